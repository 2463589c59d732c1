//! Plans: the draft that refused calls build, the versions that were presented, and what became of each.

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::authority::By;
use super::tool::CallHash;

/// Longest title, in characters.
pub const TITLE_CHARS: usize = 200;
/// Longest text of a plan in all (summary, steps, questions, risks), in characters.
pub const BODY_CHARS: usize = 50_000;
/// Longest summary of what was done, in characters.
pub const DONE_CHARS: usize = 4_000;
/// Most steps of one plan.
pub const STEPS_MAX: usize = 100;
/// Versions kept in memory; older ones stay in the log.
pub const VERSIONS_MAX: usize = 50;

/// A call that plan mode refused, kept so that an approved plan can make exactly it. No model can write this.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptCall {
    /// Wire name of the tool.
    pub tool: String,
    /// Arguments as they were refused.
    pub arguments: Value,
    /// Hash of both.
    pub hash: CallHash,
}

/// One step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// What is done, one line.
    pub title: String,
    /// More, if any.
    pub detail: String,
    /// Tools it would use.
    pub tools: Vec<String>,
    /// The refused call behind it, if that is where it came from.
    pub kept: Option<KeptCall>,
}

/// What became of a version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlanStatus {
    /// Presented; a person has not decided.
    #[default]
    Waiting,
    /// A person approved it.
    Approved,
    /// A person wants changes.
    ChangesRequested,
    /// A person set it aside.
    Dismissed,
    /// Set aside because plan mode was left; comes back when it is entered again.
    SetAside,
    /// A newer version took its place.
    Superseded,
    /// The agent says it is done. Recorded, not verified.
    Completed,
    /// A person says it is over; nobody says what was done.
    Closed,
}

impl PlanStatus {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            PlanStatus::Waiting => "waiting", PlanStatus::Approved => "approved", PlanStatus::ChangesRequested => "changes_requested",
            PlanStatus::Dismissed => "dismissed", PlanStatus::SetAside => "set_aside", PlanStatus::Superseded => "superseded",
            PlanStatus::Completed => "completed", PlanStatus::Closed => "closed",
        }
    }

    /// The status a word names.
    pub fn from_word(word: &str) -> Option<PlanStatus> {
        use PlanStatus::*;
        [Waiting, Approved, ChangesRequested, Dismissed, SetAside, Superseded, Completed, Closed].into_iter().find(|s| s.word() == word)
    }
}

/// Who brought a version to where it stands, and when.
#[derive(Clone, Debug, PartialEq)]
pub struct Decided {
    /// Who, on which surface, with what words.
    pub by: By,
    /// Unix milliseconds.
    pub at_ms: u64,
}

/// One presented version. Its text never changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanVersion {
    /// 1 and up.
    pub version: u32,
    /// First sentence of the summary, at most 200 characters.
    pub title: String,
    /// The whole summary.
    pub summary: String,
    /// In order.
    pub steps: Vec<Step>,
    /// What the agent asks back.
    pub open_questions: Vec<String>,
    /// What could go wrong.
    pub risks: Vec<String>,
    /// First 16 hex digits of the SHA-256 over the text without white space.
    pub hash: String,
    /// What became of it.
    pub status: PlanStatus,
    /// Unix milliseconds of its presentation; 0 before.
    pub presented_ms: u64,
    /// The newest decision about it.
    pub decided: Option<Decided>,
    /// What the agent says was done, once it has.
    pub done: String,
}

/// A submitted plan before it has a number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Proposal {
    /// A title of its own; empty: the first sentence of the summary.
    pub title: String,
    /// The whole summary.
    pub summary: String,
    /// In order; `kept` is filled by the gateway, never from the arguments.
    pub steps: Vec<Step>,
    /// What the agent asks back.
    pub open_questions: Vec<String>,
    /// What could go wrong.
    pub risks: Vec<String>,
}

/// Why a submission was refused; `field` names the argument.
#[derive(Clone, Debug, PartialEq)]
pub struct BadPlan {
    /// `missing_required_field` or `too_long`.
    pub code: &'static str,
    /// `summary`, `steps`, `steps[2].title` (counted from 0), `title` or `plan`.
    pub field: String,
    /// For the agent.
    pub message: String,
}

impl BadPlan {
    fn missing(field: &str, message: &str) -> Self { Self { code: "missing_required_field", field: field.into(), message: message.into() } }

    fn too_long(field: impl Into<String>, message: String) -> Self { Self { code: "too_long", field: field.into(), message } }
}

impl Proposal {
    /// Reads `plan__submit` arguments: `summary`, `steps` (strings or `{title|step, detail|description, tools}`),
    /// `open_questions`, `risks`; or the single `plan` argument (Markdown with a heading) of `exit_plan_mode`.
    ///
    /// # Errors
    /// [`BadPlan`] that names the missing or oversized field.
    pub fn parse(arguments: &Value) -> Result<Proposal, BadPlan> {
        if let Some(text) = arguments["plan"].as_str() {
            return Self::parse_markdown(text);
        }
        let summary = arguments["summary"].as_str().unwrap_or("").trim().to_string();
        if summary.is_empty() {
            return Err(BadPlan::missing("summary", "summary is missing: say in a sentence or two what the plan is for"));
        }
        let steps: Vec<Step> = arguments["steps"].as_array().map(|list| list.iter().filter_map(step_of).collect()).unwrap_or_default();
        if steps.is_empty() {
            return Err(BadPlan::missing("steps", "steps is missing or empty: give at least one step"));
        }
        let texts = |name: &str| -> Vec<String> {
            arguments[name].as_array().map(|l| l.iter().filter_map(Value::as_str).map(str::to_string).collect()).unwrap_or_default()
        };
        let title = arguments["title"].as_str().unwrap_or("").trim().to_string();
        Self { title, summary, steps, open_questions: texts("open_questions"), risks: texts("risks") }.checked("title")
    }

    fn parse_markdown(text: &str) -> Result<Proposal, BadPlan> {
        let mut lines = text.trim().lines();
        let head = lines.next().unwrap_or("").trim();
        let summary = head.trim_start_matches('#').trim().to_string();
        if !head.starts_with("# ") || summary.is_empty() {
            return Err(BadPlan::missing("plan", "plan must begin with a heading line, \"# What it is for\", and then hold its steps"));
        }
        let steps: Vec<Step> = lines.map(list_item)
            .filter(|l| !l.is_empty()).map(|l| Step { title: l.into(), ..Step::default() }).collect();
        if steps.is_empty() {
            return Err(BadPlan::missing("plan", "plan holds a heading and no steps"));
        }
        Self { title: summary.clone(), summary, steps, ..Self::default() }.checked("plan")
    }

    /// Nothing is cut: what is too long is refused, with the name of the argument.
    fn checked(self, title_field: &str) -> Result<Proposal, BadPlan> {
        let chars = |text: &str| text.chars().count();
        if chars(&self.title) > TITLE_CHARS {
            return Err(BadPlan::too_long(title_field, format!("a title has at most {TITLE_CHARS} characters, this one has {}", chars(&self.title))));
        }
        if self.steps.len() > STEPS_MAX {
            return Err(BadPlan::too_long("steps", format!("a plan has at most {STEPS_MAX} steps, this one has {}", self.steps.len())));
        }
        if let Some(at) = self.steps.iter().position(|s| chars(&s.title) > TITLE_CHARS) {
            let message = format!("the title of a step has at most {TITLE_CHARS} characters, step {} has {}; put the rest into its detail", at + 1, chars(&self.steps[at].title));
            return Err(BadPlan::too_long(format!("steps[{at}].title"), message));
        }
        let steps: usize = self.steps.iter().map(|s| chars(&s.title) + chars(&s.detail)).sum();
        let body = steps + chars(&self.summary) + self.open_questions.iter().chain(&self.risks).map(|t| chars(t)).sum::<usize>();
        if body > BODY_CHARS {
            let field = if chars(&self.summary) > BODY_CHARS { "summary" } else { "steps" };
            return Err(BadPlan::too_long(field, format!("a plan has at most {BODY_CHARS} characters in all, this one has {body}")));
        }
        Ok(self)
    }

    /// Its own title, or the first sentence of the summary, at most 200 characters.
    pub fn title(&self) -> String {
        if !self.title.is_empty() {
            return self.title.clone();
        }
        let end = self.summary.char_indices().find(|(i, c)| {
            *c == '\n' || matches!(c, '.' | '!' | '?') && self.summary[i + c.len_utf8()..].chars().next().is_none_or(char::is_whitespace)
        });
        let first = end.map_or(self.summary.as_str(), |(i, _)| &self.summary[..i]);
        clip(first.trim(), TITLE_CHARS)
    }

    /// First 16 hex digits of the SHA-256 over all its text without white space, so that a change of white space is no change.
    pub fn hash(&self) -> String {
        let mut hasher = Sha256::new();
        let mut feed = |text: &str| {
            hasher.update(bare(text).as_bytes());
            hasher.update([0]);
        };
        // A title of its own is text of the plan; one that is the summary's beginning is in it already.
        if !self.title.is_empty() && !self.summary.starts_with(&self.title) {
            feed(&self.title);
        }
        feed(&self.summary);
        for step in &self.steps {
            feed(&step.title);
            feed(&step.detail);
            if let Some(kept) = &step.kept {
                feed(&kept.hash.iter().map(|b| format!("{b:02x}")).collect::<String>());
            }
        }
        self.open_questions.iter().chain(&self.risks).for_each(|t| feed(t));
        hasher.finalize().iter().take(8).map(|b| format!("{b:02x}")).collect()
    }

    /// Puts the refused calls of the draft behind the steps of the same title, each used once, in order.
    pub fn keep_from(&mut self, draft: &[Step]) {
        let mut used = vec![false; draft.len()];
        for step in &mut self.steps {
            step.kept = None;
            let found = draft.iter().enumerate().find(|(i, d)| !used[*i] && d.kept.is_some() && same_words(&d.title, &step.title));
            if let Some((i, from)) = found {
                used[i] = true;
                step.kept = from.kept.clone();
                if step.tools.is_empty() {
                    step.tools = from.tools.clone();
                }
            }
        }
    }
}

/// Same words, whatever the case, marks or spacing.
pub fn same_words(a: &str, b: &str) -> bool {
    let words = |t: &str| t.to_lowercase().split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).map(str::to_string).collect::<Vec<_>>();
    words(a) == words(b)
}

/// A line without its mark: "- ", "* ", "## ", "3. " or "3) ". A number that belongs to the sentence stays.
fn list_item(line: &str) -> &str {
    let line = line.trim().trim_start_matches(['-', '*', '#']).trim_start();
    let after = line.trim_start_matches(|c: char| c.is_ascii_digit());
    match after.strip_prefix(['.', ')']) {
        Some(rest) if after.len() < line.len() && (rest.is_empty() || rest.starts_with(' ')) => rest.trim_start(),
        _ => line,
    }
}

fn step_of(value: &Value) -> Option<Step> {
    let text = |names: [&str; 2]| names.iter().find_map(|n| value[*n].as_str()).unwrap_or("").trim().to_string();
    let (mut title, detail) = match value.as_str() {
        Some(line) => (line.trim().to_string(), String::new()),
        None => (text(["title", "step"]), text(["detail", "description"])),
    };
    if title.is_empty() {
        title = clip(&detail, 120);
    }
    let tools = value["tools"].as_array().map(|l| l.iter().filter_map(Value::as_str).map(str::to_string).collect()).unwrap_or_default();
    (!title.is_empty()).then_some(Step { title, detail, tools, kept: None })
}

/// Text without any white space: two texts that differ only there are the same.
pub fn bare(text: &str) -> String { text.chars().filter(|c| !c.is_whitespace()).collect() }

/// The first `chars` characters.
pub fn clip(text: &str, chars: usize) -> String { text.chars().take(chars).collect() }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_a_markdown_plan_lose_their_marks_and_nothing_else() {
        let text = "# Tidy up\n\n- sweep\n* mop\n1. dust\n12) air\n## rest\n- 3 chairs go\n2.5 litres of water\n3\n4.\n.5 is a half\n) odd\n";
        let plan = Proposal::parse(&serde_json::json!({"plan": text})).expect("a plan");
        let steps: Vec<&str> = plan.steps.iter().map(|s| s.title.as_str()).collect();
        assert_eq!(steps, ["sweep", "mop", "dust", "air", "rest", "3 chairs go", "2.5 litres of water", "3", ".5 is a half", ") odd"]);
        assert_eq!(plan.summary, "Tidy up");
        for wrong in ["", "Tidy up\n- sweep", "#Tidy\n- sweep", "# \n- sweep", "# Tidy up", "# Tidy up\n\n- \n"] {
            assert_eq!(Proposal::parse(&serde_json::json!({"plan": wrong})).map_err(|e| (e.code, e.field)), Err(("missing_required_field", "plan".to_string())), "{wrong:?}");
        }
    }

    #[test]
    fn limits_hold_to_the_character() {
        let plan = |title: usize, summary: usize, steps: &[(usize, usize)]| {
            let steps: Vec<Value> = steps.iter().map(|(t, d)| serde_json::json!({"title": "t".repeat(*t), "detail": "d".repeat(*d)})).collect();
            Proposal::parse(&serde_json::json!({"title": "a".repeat(title), "summary": "s".repeat(summary), "steps": steps})).map(|_| ()).map_err(|e| e.field)
        };
        let refused = |field: &str| Err(field.to_string());
        assert_eq!((plan(TITLE_CHARS, 1, &[(1, 0)]), plan(TITLE_CHARS + 1, 1, &[(1, 0)])), (Ok(()), refused("title")));
        assert_eq!((plan(0, 1, &vec![(1, 0); STEPS_MAX]), plan(0, 1, &vec![(1, 0); STEPS_MAX + 1])), (Ok(()), refused("steps")));
        assert_eq!((plan(0, 1, &[(1, 0), (TITLE_CHARS, 0)]), plan(0, 1, &[(1, 0), (TITLE_CHARS + 1, 0)])), (Ok(()), refused("steps[1].title")));
        // Titles, details and the summary count together.
        let half = BODY_CHARS / 2;
        assert_eq!((plan(0, half, &[(10, half - 30), (10, 10)]), plan(0, half, &[(10, half - 30), (11, 10)])), (Ok(()), refused("steps")));
        assert_eq!((plan(0, BODY_CHARS, &[(1, 0)]), plan(0, BODY_CHARS + 1, &[(1, 0)])), (refused("steps"), refused("summary")));
        let asked = serde_json::json!({"summary": "s", "steps": ["t"], "open_questions": ["q".repeat(half)], "risks": ["r".repeat(half - 1)]});
        assert_eq!(Proposal::parse(&asked).map_err(|e| e.field), Err("steps".to_string()), "questions and risks count as well");
    }

    #[test]
    fn a_title_is_the_first_sentence_and_a_hash_is_over_all_words() {
        let titled = |title: &str, summary: &str| Proposal { title: title.into(), summary: summary.into(), ..Proposal::default() };
        assert_eq!(["Ask v1.2 first. Then go.", "What now? Go.", "One line\nand another", "No end"].map(|s| titled("", s).title()), ["Ask v1.2 first", "What now", "One line", "No end"]);
        assert_eq!(titled("Own", "Other.").title(), "Own");
        assert_eq!(titled("", &"x".repeat(TITLE_CHARS + 9)).title().len(), TITLE_CHARS);
        let base = titled("", "Tidy up the room.");
        let hash = |p: &Proposal| p.hash();
        assert_eq!(hash(&base).len(), 16);
        assert_eq!(hash(&base), hash(&titled("", " Tidy  up the\nroom. ")), "white space is no change");
        assert_eq!(hash(&base), hash(&titled("Tidy up", "Tidy up the room.")), "a title that begins the summary is in it already");
        assert_ne!(hash(&base), hash(&titled("Clean", "Tidy up the room.")));
        assert_ne!(hash(&base), hash(&Proposal { risks: vec!["dust".into()], ..base.clone() }));
        assert_ne!(hash(&Proposal { open_questions: vec!["why".into()], ..base.clone() }), hash(&base));
        let step = |title: &str, detail: &str| Proposal { steps: vec![Step { title: title.into(), detail: detail.into(), ..Step::default() }], ..base.clone() };
        assert_ne!(hash(&step("sweep", "")), hash(&step("sweep", "twice")));
        assert_ne!(hash(&step("sweepit", "")), hash(&step("sweep", "it")));
    }

    #[test]
    fn a_step_has_a_title_or_lends_one_from_its_detail() {
        let plan = Proposal::parse(&serde_json::json!({"summary": "s", "steps": ["one", {"step": " two ", "description": "d"}, {"detail": "x".repeat(130)}, {"title": ""}, 7, {"title": "three", "tools": ["a", 1, "b"]}]})).expect("a plan");
        let seen: Vec<(String, usize, usize)> = plan.steps.iter().map(|s| (clip(&s.title, 5), s.detail.len(), s.tools.len())).collect();
        assert_eq!(seen, [("one".into(), 0, 0), ("two".into(), 1, 0), ("xxxxx".into(), 130, 0), ("three".into(), 0, 2)]);
        assert_eq!(plan.steps[2].title.len(), 120);
        assert!(same_words("Buy, milk!", "buy  MILK") && !same_words("buy milk", "buymilk") && !same_words("", "x"));
    }

    #[test]
    fn a_refused_call_is_kept_once_by_the_step_that_names_it() {
        let kept = |n: u8| Some(KeptCall { tool: "notes__add".into(), arguments: Value::Null, hash: [n; 32] });
        let step = |title: &str, kept: Option<KeptCall>| Step { title: title.into(), tools: kept.iter().map(|k| k.tool.clone()).collect(), kept, ..Step::default() };
        let draft = [step("Add milk", None), step("Add eggs", kept(1)), step("add MILK!", kept(2)), step("Add milk", kept(3))];
        let mut plan = Proposal { steps: ["Add milk", "Add milk", "Add milk", "Add eggs", "Sweep"].map(|t| step(t, None)).into(), ..Proposal::default() };
        plan.steps[4].kept = kept(9);
        plan.steps[3].tools = vec!["own".into()];
        plan.keep_from(&draft);
        let found: Vec<Option<u8>> = plan.steps.iter().map(|s| s.kept.as_ref().map(|k| k.hash[0])).collect();
        assert_eq!(found, [Some(2), Some(3), None, Some(1), None], "each once, in order, and never from the arguments");
        assert_eq!((plan.steps[0].tools.as_slice(), plan.steps[3].tools.as_slice()), (&["notes__add".to_string()][..], &["own".to_string()][..]));
    }
}
