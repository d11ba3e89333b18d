//! Percentiles, and a row of the page.

use std::fmt;
use std::time::Duration;

/// Samples of one thing, in the order they were taken.
#[derive(Clone, Debug, Default)]
pub struct Samples(Vec<Duration>);

impl Samples {
    pub fn add(&mut self, sample: Duration) {
        self.0.push(sample);
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The nearest rank.
    pub fn at(&self, percent: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort();
        let rank = (sorted.len() * percent).div_ceil(100).max(1);
        sorted[rank - 1]
    }
}

pub fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

pub struct Row {
    pub what: String,
    pub bound: &'static str,
    /// Whether the figure keeps to the bound.
    pub met: bool,
    pub measured: String,
    pub n: usize,
    pub command: String,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row {
            what,
            bound,
            met,
            measured,
            n,
            command,
        } = self;
        let met = if *met { "yes" } else { "no" };
        write!(
            f,
            "| {what} | {bound} | {met} | {measured} | {n} | `{command}` |"
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Samples;

    #[test]
    fn percentiles_are_nearest_ranks() {
        let mut samples = Samples::default();
        (1..=20)
            .rev()
            .for_each(|sample| samples.add(Duration::from_millis(sample)));
        assert_eq!(samples.at(50), Duration::from_millis(10));
        assert_eq!(samples.at(95), Duration::from_millis(19));
        assert_eq!(samples.at(100), Duration::from_millis(20));
    }
}
