//! What changed from one version of a plan to another, step by step. Pure; REST and the mirror draw it, the voice says it.

use super::plan::{PlanVersion, Step, bare};

/// What happened to one step (or to the summary, the questions, the risks).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The same in both; numbers from 1 in the older and the newer.
    Same(u32, u32),
    /// It was in the older only.
    Gone(u32),
    /// It is in the newer only.
    New(u32),
    /// In its place stands another text.
    Other(u32, u32),
}

/// The difference of two versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Version it starts from.
    pub from: u32,
    /// Version it leads to.
    pub to: u32,
    /// Title or summary differ, beyond white space.
    pub summary: bool,
    /// The steps, in the order of the newer, what is gone at its old place.
    pub steps: Vec<Change>,
    /// Questions or risks differ.
    pub remarks: bool,
}

impl Difference {
    /// Numbers, in the newer version, of the steps that are new or other.
    pub fn touched(&self) -> Vec<u32> {
        self.steps.iter().filter_map(|c| match c { Change::New(n) | Change::Other(_, n) => Some(*n), Change::Same(..) | Change::Gone(_) => None }).collect()
    }

    /// How many steps are gone.
    pub fn gone(&self) -> usize { self.steps.iter().filter(|c| matches!(c, Change::Gone(_))).count() }
}

/// Compares two versions. At most 100 steps each, so the table has at most 10,201 fields.
pub fn between(old: &PlanVersion, new: &PlanVersion) -> Difference {
    let texts = |list: &[String]| list.iter().map(|t| bare(t)).collect::<Vec<_>>();
    Difference {
        from: old.version,
        to: new.version,
        summary: bare(&old.title) != bare(&new.title) || bare(&old.summary) != bare(&new.summary),
        steps: steps(&old.steps, &new.steps),
        remarks: texts(&old.open_questions) != texts(&new.open_questions) || texts(&old.risks) != texts(&new.risks),
    }
}

fn same(a: &Step, b: &Step) -> bool {
    bare(&a.title) == bare(&b.title) && bare(&a.detail) == bare(&b.detail) && a.kept.as_ref().map(|k| k.hash) == b.kept.as_ref().map(|k| k.hash)
}

/// The longest common run of steps stays; between its members, what is gone and what is new stand for each other in order.
fn steps(old: &[Step], new: &[Step]) -> Vec<Change> {
    let mut common = vec![vec![0_usize; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i][j] = if same(&old[i], &new[j]) { common[i + 1][j + 1] + 1 } else { common[i + 1][j].max(common[i][j + 1]) };
        }
    }
    let (mut out, mut gone, mut fresh) = (Vec::new(), Vec::new(), Vec::new());
    let (mut i, mut j) = (0, 0);
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && same(&old[i], &new[j]) {
            settle(&mut gone, &mut fresh, &mut out);
            out.push(Change::Same(i as u32 + 1, j as u32 + 1));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || i < old.len() && common[i + 1][j] >= common[i][j + 1] {
            gone.push(i as u32 + 1);
            i += 1;
        } else {
            fresh.push(j as u32 + 1);
            j += 1;
        }
    }
    settle(&mut gone, &mut fresh, &mut out);
    out
}

fn settle(gone: &mut Vec<u32>, fresh: &mut Vec<u32>, out: &mut Vec<Change>) {
    let pairs = gone.len().min(fresh.len());
    out.extend(gone.drain(..pairs).zip(fresh.drain(..pairs)).map(|(a, b)| Change::Other(a, b)));
    out.extend(gone.drain(..).map(Change::Gone));
    out.extend(fresh.drain(..).map(Change::New));
}

#[cfg(test)]
mod tests {
    use super::*;
    use Change::*;

    fn plan(version: u32, steps: &[&str]) -> PlanVersion {
        PlanVersion { version, title: "t".into(), steps: steps.iter().map(|t| Step { title: (*t).into(), ..Step::default() }).collect(), ..PlanVersion::default() }
    }

    fn of(old: &[&str], new: &[&str]) -> Vec<Change> { between(&plan(1, old), &plan(2, new)).steps }

    #[test]
    fn ledger_l44_the_difference_of_two_versions_names_the_changed_steps() {
        assert_eq!(of(&["a", "b"], &["a", "b "]), [Same(1, 1), Same(2, 2)], "white space is no change");
        assert_eq!(of(&["a", "b", "c"], &["a", "x", "c"]), [Same(1, 1), Other(2, 2), Same(3, 3)]);
        assert_eq!(of(&["a", "c"], &["a", "b", "c", "d"]), [Same(1, 1), New(2), Same(2, 3), New(4)]);
        assert_eq!(of(&["a", "b", "c"], &["c"]), [Gone(1), Gone(2), Same(3, 1)]);
        assert_eq!(of(&[], &["a"]), [New(1)]);
        let whole = between(&plan(1, &["a", "b"]), &plan(2, &["b", "c"]));
        assert_eq!((whole.touched(), whole.gone(), whole.summary, whole.remarks), (vec![2], 1, false, false));
        let other = between(&plan(1, &["a"]), &PlanVersion { summary: "s".into(), risks: vec!["r".into()], ..plan(3, &["a"]) });
        assert!(other.summary && other.remarks && other.touched().is_empty() && (other.from, other.to) == (1, 3));
    }

    #[test]
    fn every_step_of_both_stands_in_it_once() {
        let words = ["a", "b", "c"];
        for n in 0..3_u32.pow(6) {
            let pick = |k: u32| words[(n / 3_u32.pow(k) % 3) as usize];
            let (old, new): (Vec<&str>, Vec<&str>) = ((0..3).map(pick).collect(), (3..6).map(pick).collect());
            let (mut was, mut is) = (vec![], vec![]);
            for change in of(&old, &new) {
                match change { Same(a, b) | Other(a, b) => { was.push(a); is.push(b) } Gone(a) => was.push(a), New(b) => is.push(b) }
            }
            was.sort_unstable();
            is.sort_unstable();
            assert_eq!((was, is), (vec![1, 2, 3], vec![1, 2, 3]), "{old:?} {new:?}");
        }
    }
}
