//! Every row of the behaviour ledger and every numbered behaviour is pinned by a test that names it.
//!
//! `tests/data/ledger_rows.txt` lists the rows, each with the mutant under which its test goes red (`scripts/mutants rows` makes each of
//! them and looks). `tests/data/ledger_deferred.txt` holds those whose subject comes later, `tests/data/behaviours.txt` the numbered ones.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf { Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf() }

fn data(name: &str) -> String { fs::read_to_string(root().join("tests/data").join(name)).unwrap_or_else(|e| panic!("tests/data/{name}: {e}")) }

/// Lines that say something.
fn lines(text: &str) -> impl Iterator<Item = &str> { text.lines().map(str::trim_end).filter(|l| !l.trim().is_empty() && !l.starts_with('#')) }

fn walk(folder: &Path, into: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()) {
        if path.is_dir() { walk(&path, into) } else if path.extension().is_some_and(|e| e == "rs") { into.push(path) }
    }
}

/// Names of all functions that are tests, and the file each stands in.
fn tests() -> BTreeMap<String, PathBuf> {
    let mut files = Vec::new();
    ["src", "tests"].iter().for_each(|top| walk(&root().join(top), &mut files));
    let mut found = BTreeMap::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap_or_default();
        let mut marked = false;
        for line in text.lines().map(str::trim_start) {
            // `#[test]`, `#[tokio::test(...)]`; a property test of proptest carries `#[test]` too.
            marked = match line {
                l if l.starts_with("#[") => marked || l.starts_with("#[test]") || l.starts_with("#[tokio::test"),
                l if l.starts_with("//") => marked,
                l => {
                    let name = l.trim_start_matches("pub ").trim_start_matches("async ").strip_prefix("fn ").map(|l| l.split(['(', '<']).next().unwrap_or("").trim());
                    if let (true, Some(name)) = (marked, name) { found.insert(name.to_string(), file.clone()); }
                    false
                }
            };
        }
    }
    found
}

/// `ledger_f19_f20_an_approved_...` names F19 and F20.
fn rows_of(name: &str) -> Vec<String> {
    let Some(rest) = name.strip_prefix("ledger_") else { return vec![] };
    let is_row = |t: &&str| t.len() > 1 && matches!(t.as_bytes()[0], b'f' | b'd' | b'l') && t[1..].bytes().all(|b| b.is_ascii_digit());
    rest.split('_').take_while(is_row).map(str::to_uppercase).collect()
}

struct Row {
    id: String,
    tag: char,
    mutant: Option<Mutant>,
}

/// One change of one place; `becomes` instead of `what`.
struct Mutant {
    file: String,
    what: String,
    becomes: String,
}

/// ``    src/engine/gate.rs `what` -> `becomes` ``
fn mutant(line: &str) -> Option<Mutant> {
    let parts: Vec<&str> = line.split('`').collect();
    let [file, what, arrow, becomes, _] = parts[..] else { return None };
    (arrow.trim() == "->").then(|| Mutant { file: file.trim().into(), what: what.into(), becomes: becomes.into() })
}

fn rows() -> Vec<Row> {
    let text = data("ledger_rows.txt");
    let mut rows: Vec<Row> = Vec::new();
    for line in lines(&text) {
        if line.starts_with(' ') {
            let row = rows.last_mut().unwrap_or_else(|| panic!("a mutant before any row: {line}"));
            row.mutant = Some(mutant(line).unwrap_or_else(|| panic!("{}: not `file `what` -> `becomes``: {line}", row.id)));
            continue;
        }
        let mut words = line.split_whitespace();
        let (id, tag) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        assert!(["A", "B", "X"].contains(&tag) && words.next().is_some(), "not `ID TAG words`: {line}");
        rows.push(Row { id: id.into(), tag: tag.chars().next().unwrap_or(' '), mutant: None });
    }
    rows
}

fn deferred() -> BTreeMap<String, String> {
    let text = data("ledger_deferred.txt");
    lines(&text).map(|l| l.split_once(' ').map(|(id, why)| (id.to_string(), why.trim().to_string())).unwrap_or_else(|| panic!("nothing says what brings it: {l}"))).collect()
}

#[test]
fn ledger_f59_every_row_is_named_by_a_test_and_goes_red_under_a_named_mutant() {
    let (rows, deferred, tests) = (rows(), deferred(), tests());
    let ids: Vec<&str> = rows.iter().map(|r| r.id.as_str()).collect();
    let all: Vec<String> = [("F", 59), ("D", 66), ("L", 71)].iter().flat_map(|(l, n)| (1..=*n).map(move |i| format!("{l}{i}"))).collect();
    assert_eq!(ids, all, "the list holds every row once, in order");
    let out: Vec<&str> = rows.iter().filter(|r| r.tag == 'X').map(|r| r.id.as_str()).collect();
    assert_eq!(out, ["F57", "D27", "D50", "D62", "D63", "L9", "L67", "L71"]);
    let allowed: BTreeSet<&str> = ["F26", "F29", "F32", "F33", "F43", "F44", "F45", "D21", "D34", "L10", "L13", "L31"].into();
    assert_eq!(deferred.keys().map(String::as_str).collect::<BTreeSet<_>>(), allowed, "what may wait");
    let named: BTreeSet<String> = tests.keys().flat_map(|name| rows_of(name)).collect();
    let mut wrong = Vec::new();
    for row in rows.iter().filter(|r| r.tag != 'X') {
        let waits = deferred.contains_key(&row.id);
        if !waits && !named.contains(&row.id) { wrong.push(format!("{}: no test names it", row.id)); }
        match &row.mutant {
            None if !waits => wrong.push(format!("{}: no mutant says when its test goes red", row.id)),
            Some(m) => {
                let source = fs::read_to_string(root().join(&m.file)).unwrap_or_default();
                if !source.contains(&m.what) { wrong.push(format!("{}: {} does not hold `{}` (any more)", row.id, m.file, m.what)); }
                if m.what == m.becomes { wrong.push(format!("{}: its mutant changes nothing", row.id)); }
            }
            None => {}
        }
    }
    wrong.extend(named.iter().filter(|id| !all.contains(id)).map(|id| format!("{id}: a test names it and there is no such row")));
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
    println!("{} rows: {} named by {} tests, {} deferred, {} out of scope", rows.len(), rows.len() - out.len() - deferred.len(), tests.keys().filter(|n| !rows_of(n).is_empty()).count(), deferred.len(), out.len());
}

#[test]
fn ledger_d58_designs_that_were_not_taken_stay_on_record() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap_or_default();
    let section = page.split_once("## Plan mode: what was weighed and not taken").map_or("", |(_, rest)| rest.split("\n## ").next().unwrap_or(""));
    for design in ["posture and permission together", "Guidance without a gate", "list of tool names", "cap on what a session may access", "in memory alone", "Flips as lines", "plan as a file", "Leaving by prose", "as a permission"] {
        assert!(section.contains(design), "{design}");
    }
}

#[test]
fn ledger_f58_what_plan_mode_does_not_stop_stands_on_its_page() {
    let page = fs::read_to_string(root().join("docs/plan-mode.md")).unwrap_or_default();
    let section = page.split_once("What it does not stop").map_or("", |(_, rest)| rest.split("\n## ").next().unwrap_or(""));
    assert!(section.split_whitespace().count() > 60, "docs/plan-mode.md has no section \"What it does not stop\" that says anything");
}

#[test]
fn every_numbered_behaviour_is_pinned_or_says_why_it_does_not_apply() {
    let (text, tests) = (data("behaviours.txt"), tests());
    let mut seen = Vec::new();
    let mut wrong = Vec::new();
    for line in lines(&text) {
        let (number, what) = line.split_once(' ').unwrap_or((line, ""));
        seen.push(number.to_string());
        let what = what.trim();
        let reason = ["deferred:", "does not apply:", "decided otherwise:"].iter().find_map(|w| what.strip_prefix(w));
        match reason {
            Some(reason) if reason.trim().len() > 10 => {}
            Some(_) => wrong.push(format!("{number}: say why")),
            None if what.is_empty() => wrong.push(format!("{number}: nothing pins it")),
            None => wrong.extend(what.split_whitespace().filter(|name| !tests.contains_key(*name)).map(|name| format!("{number}: there is no test {name}"))),
        }
    }
    let all: Vec<String> = (1..=84).map(|n| n.to_string()).chain((1..=27).map(|n| format!("D-{n}"))).collect();
    assert_eq!(seen, all, "each number once, in order");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_scanner_reads_names() {
    assert_eq!(rows_of("ledger_f19_d2_l30_what_it_says"), ["F19", "D2", "L30"]);
    assert!(rows_of("ledger_rows_are_named").is_empty() && rows_of("f19_says").is_empty());
    let m = mutant("    src/a.rs `a == b` -> `a != b`").unwrap_or_else(|| panic!("no mutant"));
    assert_eq!((m.file.as_str(), m.what.as_str(), m.becomes.as_str()), ("src/a.rs", "a == b", "a != b"));
    assert!(mutant("    src/a.rs a -> b").is_none());
}
