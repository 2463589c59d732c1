//! Published figures: each is a JSON file in `docs/figures/`, and `docs/figures.md` is written from those files alone.
//!
//! Called by every command that measures. A number in the page that no JSON file holds cannot arise; a test writes the page
//! again and demands that it is the same.

use std::fmt::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The order of the page: name of the figure, which is also its file's name.
pub const ORDER: &[&str] = &[
    "commands", "denials", "consents", "near-misses", "real-speech", "noise", "echo", "over-speech", "self-interruptions", "cut-offs", "turn-latency", "barge-in", "words",
    "hearing-cost", "relay", "text", "gate", "kills", "proofs",
];

/// One figure: a table with an aim beside each line.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Figure {
    /// File name without `.json`; one of [`ORDER`].
    pub name: String,
    /// Heading.
    pub title: String,
    /// The command that makes it again.
    pub command: String,
    /// Processor, number of cores, model.
    pub machine: String,
    /// What was counted, and how.
    pub method: String,
    /// The lines of its table.
    pub rows: Vec<Row>,
    /// What the figure does not mean, what missed its aim and what was tried.
    pub notes: Vec<String>,
}

/// One line of a figure.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Row {
    /// What was measured ("10 dB, neural voices").
    pub what: String,
    /// As it is read: "3.1 % (12 of 390)".
    pub value: String,
    /// What was aimed at; empty when it is only reported.
    pub aim: String,
    /// Whether the aim was met; `None` without one.
    pub met: Option<bool>,
    /// The numbers behind `value`, by name, for a comparison with the next run.
    pub numbers: std::collections::BTreeMap<String, f64>,
}

impl Row {
    /// A line that is only reported.
    pub fn told(what: impl Into<String>, value: impl Into<String>) -> Self {
        Self { what: what.into(), value: value.into(), aim: String::new(), met: None, numbers: std::collections::BTreeMap::new() }
    }

    /// The line with an aim.
    pub fn aim(mut self, aim: impl Into<String>, met: bool) -> Self {
        self.aim = aim.into();
        self.met = Some(met);
        self
    }

    /// The line with one more number behind it.
    pub fn number(mut self, name: &str, value: f64) -> Self {
        self.numbers.insert(name.into(), value);
        self
    }

    /// "3.1 % (12 of 390)", with both numbers kept as `count` and `of`.
    pub fn share(what: impl Into<String>, count: usize, of: usize) -> Self {
        let share = if of == 0 { 0.0 } else { 100.0 * count as f64 / of as f64 };
        Self::told(what, format!("{share:.1} % ({count} of {of})")).number("count", count as f64).number("of", of as f64)
    }
}

/// Upper end of the one-sided 95 % interval of a share, by Clopper and Pearson. `count` hits in `of` trials.
pub fn upper_bound(count: usize, of: usize) -> f64 {
    if of == 0 || count >= of { return 1.0 }
    // The share at which so few hits would be seen in one of twenty runs; the sum falls as the share grows.
    let seen = |p: f64| {
        let (mut term, mut sum) = ((of as f64) * (1.0 - p).ln(), 0.0);
        for k in 0..=count {
            sum += term.exp();
            term += ((of - k) as f64 / (k + 1) as f64).ln() + (p / (1.0 - p)).ln();
        }
        sum
    };
    let (mut low, mut high) = (0.0, 1.0 - 1e-12);
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        if seen(middle) > 0.05 { low = middle } else { high = middle }
    }
    high
}

/// Writes the figure's JSON into `docs/figures` under `project` and the page anew.
///
/// # Errors
/// A sentence: which file could not be written or read, or that the figure's name is not in [`ORDER`].
pub fn publish(project: &Path, figure: &Figure) -> Result<(), String> {
    if !ORDER.contains(&figure.name.as_str()) {
        return Err(format!("the figure {} has no place in the page's order", figure.name));
    }
    let folder = project.join("docs/figures");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let file = folder.join(format!("{}.json", figure.name));
    let text = serde_json::to_string_pretty(figure).map_err(|e| e.to_string())?;
    std::fs::write(&file, text + "\n").map_err(|e| format!("{}: {e}", file.display()))?;
    let page = project.join("docs/figures.md");
    std::fs::write(&page, render(&load(project)?)).map_err(|e| format!("{}: {e}", page.display()))
}

/// Every figure there is, in the page's order.
///
/// # Errors
/// A sentence that names the file that cannot be read as a figure.
pub fn load(project: &Path) -> Result<Vec<Figure>, String> {
    let mut all = Vec::new();
    for name in ORDER {
        let file = project.join(format!("docs/figures/{name}.json"));
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        all.push(serde_json::from_str(&text).map_err(|e| format!("{}: {e}", file.display()))?);
    }
    Ok(all)
}

/// The page.
pub fn render(figures: &[Figure]) -> String {
    let mut page = String::from(
        "# Figures\n\nHow well voxgate hears and speaks, measured by its own commands. Each table names the command that makes it again; the JSON\n\
         behind it lies in `figures/`. This page is written by those commands. What the figures mean for a room, a headset or a voice\nstands in [hearing.md](hearing.md).\n",
    );
    for figure in figures {
        let _ = write!(page, "\n## {}\n\n`{}` on {}. {}\n\n", figure.title, figure.command, figure.machine, figure.method);
        page.push_str("| what | measured | aim | |\n|---|---|---|---|\n");
        for row in &figure.rows {
            let met = match row.met { Some(true) => "met", Some(false) => "**missed**", None => "" };
            let aim = if row.aim.is_empty() { "reported" } else { &row.aim };
            let _ = writeln!(page, "| {} | {} | {aim} | {met} |", row.what, row.value);
        }
        if !figure.notes.is_empty() { page.push('\n') }
        for note in &figure.notes {
            let _ = writeln!(page, "- {note}");
        }
    }
    page
}

/// "2 cores of Intel(R) Xeon(R) ..." for the head of a figure; `model` is what hears.
pub fn machine(model: &str) -> String {
    let told = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = told.lines().find_map(|l| l.strip_prefix("model name")).map_or("an unnamed processor", |l| l.trim_start_matches([':', ' ', '\t']));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{cores} cores of {name}, {model}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_those_of_the_binomial() {
        assert!((upper_bound(0, 3_000) - 0.000_998).abs() < 1e-5, "{}", upper_bound(0, 3_000));
        assert!((upper_bound(1, 393) - 0.012_01).abs() < 1e-4, "{}", upper_bound(1, 393));
        assert_eq!(upper_bound(5, 5), 1.0);
    }

    #[test]
    fn a_page_is_written_from_its_files_alone() {
        let folder = tempfile::tempdir().unwrap();
        let figure = Figure {
            name: "denials".into(), title: "Denials".into(), command: "voxgate eval commands".into(), machine: "a machine".into(), method: "Counted.".into(),
            rows: vec![Row::share("all", 0, 3_000).aim("0", true)], notes: vec!["Synthetic.".into()],
        };
        publish(folder.path(), &figure).unwrap();
        let page = std::fs::read_to_string(folder.path().join("docs/figures.md")).unwrap();
        assert!(page.contains("| all | 0.0 % (0 of 3000) | 0 | met |"), "{page}");
        assert_eq!(load(folder.path()).unwrap(), vec![figure]);
        assert!(publish(folder.path(), &Figure { name: "other".into(), ..load(folder.path()).unwrap()[0].clone() }).is_err());
    }

    #[test]
    fn the_published_page_is_what_its_files_say() {
        let project = Path::new(env!("CARGO_MANIFEST_DIR"));
        let figures = load(project).unwrap();
        let page = std::fs::read_to_string(project.join("docs/figures.md")).unwrap_or_default();
        assert!(figures.is_empty() && page.is_empty() || page == render(&figures), "docs/figures.md is not what docs/figures/*.json say; `voxgate eval figures` writes it");
        let files = std::fs::read_dir(project.join("docs/figures")).map_or(0, |d| d.filter(|e| e.as_ref().is_ok_and(|e| e.path().extension().is_some_and(|x| x == "json"))).count());
        assert_eq!(files, figures.len(), "a file in docs/figures has no place in the page");
    }
}
