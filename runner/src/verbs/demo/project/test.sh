sum=$(sh calc.sh 2 3)
if [ "$sum" = 5 ]; then
    echo "ok: 2 and 3 make 5"
else
    echo "FAILED: 2 and 3 make $sum, not 5"
    exit 1
fi
