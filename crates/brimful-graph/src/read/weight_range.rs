//! The range of stored weights.

use serde::{Deserialize, Serialize};

/// The range of stored weights, by which an algorithm can refuse them before it runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightRange {
    /// The least weight.
    pub min: f64,
    /// The greatest weight.
    pub max: f64,
}

impl WeightRange {
    /// The range of `weights`; `None` if there are none.
    pub fn of(weights: &[f64]) -> Option<Self> {
        let first = *weights.first()?;
        let (min, max) =
            weights.iter().fold((first, first), |(min, max), w| (min.min(*w), max.max(*w)));
        Some(Self { min, max })
    }

    /// The union of two ranges.
    pub fn union(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        let (Some(a), Some(b)) = (one, other) else {
            return one.or(other);
        };
        Some(Self { min: a.min.min(b.min), max: a.max.max(b.max) })
    }

    /// True if a weight is below zero.
    pub fn any_negative(self) -> bool {
        self.min < 0.0
    }

    /// True if a weight is infinite. Inputs with infinite weights are refused, but sums can
    /// overflow.
    pub fn any_infinite(self) -> bool {
        self.min.is_infinite() || self.max.is_infinite()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_knows_its_ends() {
        let range = WeightRange::of(&[3.5, -0.0, 7.0]).unwrap();
        assert_eq!(range, WeightRange { min: -0.0, max: 7.0 });
        assert!(!range.any_negative() && !range.any_infinite());
        assert!(
            WeightRange::union(Some(range), WeightRange::of(&[-1e-300])).unwrap().any_negative()
        );
        assert!(WeightRange::of(&[1.0, f64::INFINITY]).unwrap().any_infinite());
    }
}
