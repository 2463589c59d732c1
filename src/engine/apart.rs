//! How far two rows of letters or words are from each other.
//!
//! Pure. Called by whoever compares what was heard with what was meant: echoes, titles, counted word errors.

/// Elements to insert, drop or change to make one of the other. Takes a row of memory and the product of both lengths in time:
/// callers bound what they give.
pub fn apart<T: PartialEq>(one: &[T], other: &[T]) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.iter().enumerate() {
        let mut before = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in other.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = (before + usize::from(a != b)).min(above + 1).min(row[j] + 1);
            before = above;
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::apart;

    #[test]
    fn insertions_omissions_and_changes_are_counted() {
        let of = |a: &str, b: &str| apart(&a.chars().collect::<Vec<_>>(), &b.chars().collect::<Vec<_>>());
        assert_eq!([of("abc", "abc"), of("abc", "ac"), of("ab", "axby"), of("", "a"), of("abc", "xyz"), of("plan", "clan")], [0, 1, 2, 1, 3, 1]);
    }
}
