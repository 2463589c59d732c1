//! The known name that a mistyped one is closest to.

/// The closest of `names`, when it is close enough to have been meant: at most a third of its letters differ.
pub(super) fn nearest<'a>(given: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given: String = given.to_ascii_lowercase().chars().take(80).collect();
    names.into_iter().map(|name| (distance(&given, name), name)).filter(|(d, name)| *d <= (name.chars().count() / 3).max(1)).min().map(|(_, name)| name)
}

/// Letters to insert, drop, change or swap with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = change.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_other_words_are_not() {
        let names = ["server.port", "server.address", "listen.silence_ms"];
        assert_eq!(nearest("server.prot", names), Some("server.port"));
        assert_eq!(nearest("listen.silence", names), Some("listen.silence_ms"));
        assert_eq!(nearest("server.colour", names), None);
        assert_eq!(nearest("", names), None);
    }
}
