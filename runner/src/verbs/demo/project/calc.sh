# Prints the sum of two numbers: sh calc.sh 2 3
echo $(($1 - $2))
