//! Words of messages. Invariant: a number is followed by a noun in the right form.

use std::fmt::Display;

/// `1 vertex`, `2 vertices`; of a noun of several words the last one is in the plural.
pub fn counted<N: Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    if count == N::from(1) {
        return format!("{count} {noun}");
    }
    match noun.strip_suffix("vertex") {
        Some(before) => format!("{count} {before}vertices"),
        None => match noun.strip_suffix("entry") {
            Some(before) => format!("{count} {before}entries"),
            None => format!("{count} {noun}s"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular_and_all_others_are_plural() {
        assert_eq!(counted(1_u64, "vertex"), "1 vertex");
        assert_eq!(counted(0_usize, "removed record"), "0 removed records");
        assert_eq!(counted(2_u32, "other vertex"), "2 other vertices");
        assert_eq!(counted(3_i128, "entry"), "3 entries");
    }
}
