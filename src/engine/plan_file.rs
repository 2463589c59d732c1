//! Plans as Markdown files for people: what stands in them and what they may be called. The log is the authority; a file is a copy that
//! the gateway alone writes, and that may be edited or deleted without changing anything.
//!
//! Pure: names and texts. `store/plan_mirror` writes them.

use super::event::EventKind;
use super::plan::{PlanVersion, Step, same_words};

/// The file of the draft.
pub const DRAFT: &str = "PLAN.md";

/// Where a file of a conversation lies beneath the mirror's folder: directly in the conversation's own folder, the draft or a
/// version. `None` for an id that is no plain name and for every other file.
pub fn place(id: &str, name: &str) -> Option<String> {
    let plain = !id.is_empty() && id.len() <= 128 && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    let number = name.strip_prefix('v').and_then(|n| n.strip_suffix(".md"));
    let version = number.is_some_and(|n| n.parse::<u32>().is_ok_and(|v| v > 0 && v.to_string() == n));
    if !(plain && (name == DRAFT || version)) {
        return None;
    }
    Some(format!("{id}/{name}"))
}

/// The files an event brings: name and whole text. `newest`: the newest version before it.
pub fn files(kind: &EventKind, newest: Option<&PlanVersion>) -> Vec<(String, String)> {
    match kind {
        EventKind::Draft { steps } if !steps.is_empty() => vec![(DRAFT.to_string(), draft(steps, newest))],
        EventKind::Presented(plan) => vec![(format!("v{}.md", plan.version), version(plan)), (DRAFT.to_string(), version(plan))],
        _ => vec![],
    }
}

/// One version, whole.
pub fn version(plan: &PlanVersion) -> String {
    let mut text = format!("# {}\n\nPlan {}, {}\n", plan.title, plan.version, plan.hash);
    if plan.summary != plan.title { text.push_str(&format!("\n{}\n", plan.summary)) }
    text.push_str(&format!("\n## Steps\n\n{}", lines(&plan.steps)));
    for (head, list) in [("Open questions", &plan.open_questions), ("Risks", &plan.risks)] {
        if !list.is_empty() {
            text.push_str(&format!("\n## {head}\n\n{}", list.iter().map(|l| format!("- {l}\n")).collect::<String>()));
        }
    }
    text
}

/// The draft, and whether it differs from the newest version.
pub fn draft(steps: &[Step], newest: Option<&PlanVersion>) -> String {
    let differs = newest.is_none_or(|plan| plan.steps.len() != steps.len() || !plan.steps.iter().zip(steps).all(|(a, b)| same_words(&a.title, &b.title)));
    let note = match newest {
        Some(plan) if differs => format!("Differs from plan {}.", plan.version),
        Some(plan) => format!("As plan {}.", plan.version),
        None => "Nothing was presented yet.".to_string(),
    };
    format!("# Draft\n\n{note}\n\n## Steps\n\n{}", lines(steps))
}

fn lines(steps: &[Step]) -> String {
    let line = |(n, step): (usize, &Step)| {
        let detail = if step.detail.is_empty() { String::new() } else { format!("\n   {}", step.detail.replace('\n', "\n   ")) };
        format!("{}. {}{detail}\n", n + 1, step.title)
    };
    steps.iter().enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(title: &str) -> Step { Step { title: title.into(), ..Step::default() } }

    #[test]
    fn ledger_l37_l38_a_file_lies_directly_in_its_conversations_own_folder_and_is_markdown() {
        assert_eq!(place("c1", "PLAN.md").as_deref(), Some("c1/PLAN.md"));
        assert_eq!(place("c1", "v12.md").as_deref(), Some("c1/v12.md"));
        for name in ["v0.md", "v01.md", "v1.txt", "v1.md.md", "notes.md", "../v1.md", "a/v1.md", "v1.md/", "plan.md", "v-1.md", "v+1.md", ""] {
            assert_eq!(place("c1", name), None, "{name}");
        }
        for id in ["", ".", "..", "a/b", "../c1", "c 1", "/c1", "c1\0"] {
            assert_eq!(place(id, DRAFT), None, "{id:?}");
        }
    }

    #[test]
    fn ledger_l41_the_draft_says_whether_it_differs_from_the_newest_version() {
        let plan = PlanVersion { version: 2, title: "Shop".into(), steps: vec![step("Buy eggs")], ..PlanVersion::default() };
        assert!(draft(&[step("buy  EGGS.")], Some(&plan)).contains("As plan 2."));
        assert!(draft(&[step("buy milk")], Some(&plan)).contains("Differs from plan 2."));
        assert!(draft(&[step("buy eggs"), step("buy milk")], Some(&plan)).contains("Differs from plan 2."));
        assert!(draft(&[step("buy eggs")], None).contains("Nothing was presented yet."));
    }

    #[test]
    fn a_version_is_written_whole_and_the_draft_beside_it() {
        let plan = PlanVersion {
            version: 1, title: "Shop".into(), summary: "Shop. For eggs.".into(), steps: vec![Step { detail: "six\nbrown".into(), ..step("Buy eggs") }, step("Go home")],
            open_questions: vec!["Which?".into()], hash: "00ff".into(), ..PlanVersion::default()
        };
        let written = files(&EventKind::Presented(plan.clone()), None);
        assert_eq!(written.iter().map(|f| f.0.as_str()).collect::<Vec<_>>(), ["v1.md", "PLAN.md"]);
        assert_eq!(written[0].1, "# Shop\n\nPlan 1, 00ff\n\nShop. For eggs.\n\n## Steps\n\n1. Buy eggs\n   six\n   brown\n2. Go home\n\n## Open questions\n\n- Which?\n");
        assert_eq!(files(&EventKind::Draft { steps: vec![step("Buy milk")] }, Some(&plan)).len(), 1);
        assert!(files(&EventKind::Draft { steps: vec![] }, Some(&plan)).is_empty(), "what was presented stands");
    }
}
