//! The operator's ordered rules: which calls are allowed, asked about, denied. The last rule that fits a call counts.
//!
//! A conversation's mode rewrites them for its own calls and never in the settings: bypass makes an allowance of each asking, at
//! its place; a denial is never touched. Pure; the gate asks [`Rules::ruling`].

use super::facts::Facts;
use super::mode::AskPolicy;
use super::tool::Effect;

/// Most rules.
pub const RULES_MAX: usize = 500;

/// What a rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// It runs without being asked about.
    Allow,
    /// A person is asked.
    Ask,
    /// It never runs.
    Deny,
}

impl Ruling {
    /// Its word in a rule.
    pub fn word(self) -> &'static str {
        match self { Ruling::Allow => "allow", Ruling::Ask => "ask", Ruling::Deny => "deny" }
    }
}

/// One rule: all of its conditions must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    then: Ruling,
    tool: Option<String>,
    command: Option<String>,
    path: Option<String>,
    effect: Option<Effect>,
    irreversible: bool,
    needs_person: bool,
    text: String,
}

impl Rule {
    /// Reads `allow|ask|deny` and conditions: `tool:NAME`, `command:TEXT`, `path:TEXT` (with `*` for any run of characters, in double
    /// quotes where there are spaces), `effect:CLASS`, `irreversible`, `needs-human`.
    ///
    /// # Errors
    /// A sentence that says what is wrong and what would be right.
    pub fn parse(text: &str) -> Result<Rule, String> {
        let words = split(text)?;
        let mut words = words.iter();
        let then = match words.next().map(String::as_str) {
            Some("allow") => Ruling::Allow,
            Some("ask") => Ruling::Ask,
            Some("deny") => Ruling::Deny,
            _ => return Err(format!("\"{text}\" must begin with allow, ask or deny")),
        };
        let mut rule = Rule { then, tool: None, command: None, path: None, effect: None, irreversible: false, needs_person: false, text: text.trim().to_string() };
        for word in words {
            match word.split_once(':') {
                Some(("tool", name)) if !name.is_empty() => rule.tool = Some(name.to_string()),
                Some(("command", what)) if !what.is_empty() => rule.command = Some(what.to_string()),
                Some(("path", what)) if !what.is_empty() => rule.path = Some(what.to_string()),
                Some(("effect", class)) => rule.effect = Some(Effect::from_word(class).ok_or_else(|| format!("\"{class}\" is none of read, view, session, files, host, external, unknown"))?),
                None if word == "irreversible" => rule.irreversible = true,
                None if word == "needs-human" => rule.needs_person = true,
                _ => return Err(format!("\"{word}\" is no condition: use tool:, command:, path:, effect:, irreversible, needs-human")),
            }
        }
        let bare = rule.tool.is_none() && rule.command.is_none() && rule.path.is_none() && rule.effect.is_none() && !rule.irreversible && !rule.needs_person;
        if bare && then == Ruling::Allow {
            return Err("a rule that allows must say what: an allowance without a condition would lift every question".into());
        }
        Ok(rule)
    }

    /// As it was written.
    pub fn text(&self) -> &str { &self.text }

    /// True when every condition holds. An allowance holds for the whole call: every path and command of it must fit, and a command
    /// that could hold a second one fits none. A denial or a question holds as soon as one of them fits.
    fn fits(&self, tool: &str, facts: &Facts) -> bool {
        let whole = self.then == Ruling::Allow;
        let of = |pattern: &Option<String>, found: &[String], plain: bool| match pattern {
            None => true,
            Some(pattern) if whole => !found.is_empty() && found.iter().all(|f| like(pattern, f) && (!plain || is_one_command(f))),
            Some(pattern) => found.iter().any(|f| like(pattern, f)),
        };
        let paths: Vec<String> = facts.paths.iter().map(|p| super::guard::tidy(p)).collect();
        self.tool.as_ref().is_none_or(|t| like(t, tool))
            && of(&self.command, &facts.commands, true)
            && of(&self.path, &paths, false)
            // Nobody knows what unknown does: a rule about the outside holds for it as well, but no rule that allows.
            && self.effect.is_none_or(|e| e == facts.effect || !whole && e == Effect::External && facts.effect == Effect::Unknown)
            && (!self.irreversible || facts.irreversible)
            && (!self.needs_person || facts.needs_person)
    }

    /// True when the rule names every mark the call has: only then can it answer for a person.
    fn knows_marks(&self, facts: &Facts) -> bool { (!facts.irreversible || self.irreversible) && (!facts.needs_person || self.needs_person) }
}

/// All rules, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules(Vec<Rule>);

impl Rules {
    /// None.
    pub const fn none() -> Rules { Rules(Vec::new()) }

    /// Reads them all.
    ///
    /// # Errors
    /// The first that is wrong, in a sentence.
    pub fn parse<T: AsRef<str>>(lines: &[T]) -> Result<Rules, String> {
        if lines.len() > RULES_MAX {
            return Err(format!("there are {} rules, at most {RULES_MAX} are allowed", lines.len()));
        }
        lines.iter().map(|line| Rule::parse(line.as_ref())).collect::<Result<Vec<_>, _>>().map(Rules)
    }

    /// Each as it was written.
    pub fn texts(&self) -> Vec<String> { self.0.iter().map(|r| r.text.clone()).collect() }

    /// The rules as a conversation under this ask policy has them.
    pub fn under(&self, ask: AskPolicy) -> Rules {
        let rewritten = |rule: &Rule| match (rule.then, ask) {
            (Ruling::Ask, AskPolicy::Bypass | AskPolicy::Refuse) => Rule { then: Ruling::Allow, ..rule.clone() },
            _ => rule.clone(),
        };
        Rules(self.0.iter().map(rewritten).collect())
    }

    /// The last rule that fits the call.
    pub fn last(&self, tool: &str, facts: &Facts) -> Option<&Rule> { self.0.iter().rev().find(|rule| rule.fits(tool, facts)) }

    /// What the rules say to a call under this ask policy, and the rule that says it. `None`: nothing; the autonomy level decides.
    /// An allowance that does not name the call's marks does not answer for the person those marks ask for.
    pub fn ruling(&self, tool: &str, facts: &Facts, ask: AskPolicy) -> Option<(Ruling, &Rule)> {
        let rule = self.last_under(tool, facts, ask)?;
        let then = if rule.then == Ruling::Ask && ask != AskPolicy::Ask { Ruling::Allow } else { rule.then };
        (then != Ruling::Allow || rule.knows_marks(facts)).then_some((then, rule))
    }

    /// The last that fits once each asking has become an allowance; an allowance fits only a whole call.
    fn last_under(&self, tool: &str, facts: &Facts, ask: AskPolicy) -> Option<&Rule> {
        if ask == AskPolicy::Ask {
            return self.last(tool, facts);
        }
        self.0.iter().rev().find(|rule| match rule.then {
            Ruling::Ask => Rule { then: Ruling::Allow, ..(*rule).clone() }.fits(tool, facts),
            Ruling::Allow | Ruling::Deny => rule.fits(tool, facts),
        })
    }
}

/// Characters that join, replace or redirect commands: a text that holds one is not one plain command.
fn is_one_command(command: &str) -> bool { !command.contains([';', '|', '&', '$', '`', '(', ')', '<', '>', '\n', '\r', '{', '}', '\\']) }

/// `*` stands for any run of characters, everything else for itself.
pub fn like(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t, mut star, mut from) = (0, 0, None, 0);
    while t < text.len() {
        if p < pattern.len() && pattern[p] == '*' {
            (star, from) = (Some(p), t);
            p += 1;
        } else if p < pattern.len() && pattern[p] == text[t] {
            (p, t) = (p + 1, t + 1);
        } else if let Some(at) = star {
            from += 1;
            (p, t) = (at + 1, from);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// Words at spaces; what stands in double quotes is one word, without them.
fn split(text: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quoted, mut any) = (Vec::new(), String::new(), false, false);
    for c in text.chars() {
        match c {
            '"' => (quoted, any) = (!quoted, true),
            c if c.is_whitespace() && !quoted => {
                if any { words.push(std::mem::take(&mut word)) }
                any = false;
            }
            c => {
                word.push(c);
                any = true;
            }
        }
    }
    if quoted {
        return Err(format!("\"{text}\" has a quotation mark that is never closed"));
    }
    if any { words.push(word) }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(effect: Effect) -> Facts { Facts { effect, irreversible: false, needs_person: false, paths: vec![], commands: vec![], urls: vec![] } }

    fn said(rules: &[&str], tool: &str, facts: &Facts, ask: AskPolicy) -> Option<Ruling> {
        Rules::parse(rules).unwrap_or_else(|e| panic!("{e}")).ruling(tool, facts, ask).map(|(then, _)| then)
    }

    #[test]
    fn ledger_l7_the_last_rule_that_fits_counts_and_bypass_makes_an_allowance_of_an_asking_at_its_place() {
        let call = Facts { paths: vec!["/srv/a".into()], ..facts(Effect::Files) };
        let rules = ["deny effect:files", "ask path:/srv/*"];
        assert_eq!(said(&rules, "x__y", &call, AskPolicy::Ask), Some(Ruling::Ask), "a later asking overrides an earlier denial");
        assert_eq!(said(&rules, "x__y", &call, AskPolicy::Bypass), Some(Ruling::Allow));
        assert_eq!(said(&["ask path:/srv/*", "deny effect:files"], "x__y", &call, AskPolicy::Bypass), Some(Ruling::Deny));
        assert_eq!(said(&rules, "x__y", &facts(Effect::Files), AskPolicy::Bypass), Some(Ruling::Deny), "at its place, and for what it named");
        assert_eq!(said(&[], "x__y", &call, AskPolicy::Ask), None);
    }

    #[test]
    fn ledger_l6_a_mode_never_deletes_or_converts_a_denial() {
        let rules = Rules::parse(&["deny tool:a__*", "ask effect:host", "allow tool:b__c", "deny irreversible"]).expect("rules");
        for ask in [AskPolicy::Ask, AskPolicy::Bypass, AskPolicy::Refuse] {
            let under = rules.under(ask);
            let denials = |r: &Rules| r.0.iter().enumerate().filter(|(_, r)| r.then == Ruling::Deny).map(|(n, r)| (n, r.text.clone())).collect::<Vec<_>>();
            assert_eq!((denials(&under), under.0.len()), (denials(&rules), rules.0.len()));
        }
    }

    #[test]
    fn ledger_l11_a_mode_rewrites_for_its_own_calls_and_the_settings_stay() {
        let rules = Rules::parse(&["ask effect:host"]).expect("rules");
        let before = rules.clone();
        assert_eq!(rules.under(AskPolicy::Bypass).0[0].then, Ruling::Allow);
        assert_eq!(rules, before);
        // Judging under a policy is judging by the rules rewritten for it.
        for effect in [Effect::Host, Effect::Files] {
            let direct = rules.ruling("x", &facts(effect), AskPolicy::Bypass).map(|r| r.0);
            let under = rules.under(AskPolicy::Bypass);
            assert_eq!(direct, under.last("x", &facts(effect)).map(|r| r.then));
        }
    }

    #[test]
    fn ledger_l30_classes_and_marks_stand_in_the_operators_own_rules() {
        let marked = Facts { irreversible: true, ..facts(Effect::External) };
        assert_eq!(said(&["deny effect:external"], "x", &facts(Effect::External), AskPolicy::Ask), Some(Ruling::Deny));
        assert_eq!(said(&["deny effect:external"], "x", &facts(Effect::Unknown), AskPolicy::Ask), Some(Ruling::Deny), "unknown counts as external");
        assert_eq!(said(&["allow effect:external"], "x", &facts(Effect::Unknown), AskPolicy::Ask), None, "and no allowance is meant for it");
        assert_eq!(said(&["deny irreversible"], "x", &marked, AskPolicy::Bypass), Some(Ruling::Deny));
        assert_eq!(said(&["allow effect:external"], "x", &marked, AskPolicy::Ask), None, "an allowance answers for no mark that it does not name");
        assert_eq!(said(&["allow irreversible"], "x", &marked, AskPolicy::Ask), Some(Ruling::Allow));
        assert_eq!(said(&["ask needs-human"], "x", &Facts { needs_person: true, ..facts(Effect::Read) }, AskPolicy::Ask), Some(Ruling::Ask));
    }

    #[test]
    fn an_allowance_is_for_the_whole_call_and_for_one_command() {
        let with = |commands: &[&str]| Facts { commands: commands.iter().map(|c| (*c).to_string()).collect(), ..facts(Effect::Host) };
        let rule = ["allow command:\"git status*\""];
        assert_eq!(said(&rule, "x", &with(&["git status -s"]), AskPolicy::Ask), Some(Ruling::Allow));
        for smuggled in ["git status; rm -rf x", "git status && y", "git status | sh", "git status $(y)", "git status `y`", "git status > z", "git status\nrm x"] {
            assert_eq!(said(&rule, "x", &with(&[smuggled]), AskPolicy::Ask), None, "{smuggled}");
        }
        assert_eq!(said(&rule, "x", &with(&["git status", "rm x"]), AskPolicy::Ask), None);
        assert_eq!(said(&rule, "x", &facts(Effect::Host), AskPolicy::Ask), None, "a call without a command fits no command");
        assert_eq!(said(&["deny command:*rm*"], "x", &with(&["ls", "rm x"]), AskPolicy::Ask), Some(Ruling::Deny));
        let paths = Facts { paths: vec!["docs/a".into(), "docs/../keys".into()], ..facts(Effect::Files) };
        assert_eq!(said(&["allow path:docs/*"], "x", &paths, AskPolicy::Ask), None, "a path is judged by where it leads");
        // An asking that becomes an allowance is as narrow as an allowance.
        assert_eq!(said(&["deny effect:host", "ask command:*rm*"], "x", &with(&["ls", "rm x"]), AskPolicy::Bypass), Some(Ruling::Deny));
    }

    #[test]
    fn a_wrong_rule_says_what_would_be_right() {
        for (text, part) in [("", "must begin with"), ("maybe tool:x", "must begin with"), ("allow", "must say what"), ("deny effect:writes", "is none of"), ("deny colour:red", "is no condition"), ("deny tool:", "is no condition"), ("deny path:\"a", "never closed")] {
            assert!(Rule::parse(text).is_err_and(|e| e.contains(part)), "{text}");
        }
        assert!(Rules::parse(&["deny"]).is_ok_and(|r| r.ruling("x", &facts(Effect::Read), AskPolicy::Bypass).is_some_and(|(t, _)| t == Ruling::Deny)));
        assert!(Rules::parse(&vec!["deny"; RULES_MAX + 1]).is_err());
        for (pattern, text, fits) in [("*", "", true), ("a*c", "abbc", true), ("a*c", "abb", false), ("*b*", "abc", true), ("a", "ab", false), ("**", "x", true), ("a*a*b", "aaab", true)] {
            assert_eq!(like(pattern, text), fits, "{pattern} {text}");
        }
    }

    #[test]
    fn each_condition_is_read_and_each_alone_is_enough_for_an_allowance() {
        assert_eq!([Ruling::Allow, Ruling::Ask, Ruling::Deny].map(Ruling::word), ["allow", "ask", "deny"]);
        for text in ["allow tool:x", "allow command:x", "allow path:x", "allow effect:read", "allow irreversible", "allow needs-human"] {
            assert_eq!(Rule::parse(text).map(|r| (r.then, r.text().to_string())), Ok((Ruling::Allow, text.to_string())), "{text}");
        }
        for text in ["deny command:", "deny path:", "deny tool:", "deny irreversible:yes", "deny loud"] {
            assert!(Rule::parse(text).is_err_and(|e| e.contains("is no condition")), "{text}");
        }
        assert!(Rules::parse(&vec!["deny"; RULES_MAX]).is_ok_and(|r| r.texts() == vec!["deny"; RULES_MAX]));
        assert_eq!(split("  deny \t path:\"a b\"  x \"\" "), Ok(["deny", "path:a b", "x", ""].map(str::to_string).to_vec()));
        assert_eq!(split(""), Ok(vec![]));
        // Conditions of one rule hold together.
        let both = ["deny tool:a path:/x/*"];
        let at = |path: &str| Facts { paths: vec![path.into()], ..facts(Effect::Read) };
        assert_eq!([("a", "/x/1"), ("b", "/x/1"), ("a", "/y/1")].map(|(tool, path)| said(&both, tool, &at(path), AskPolicy::Ask)), [Some(Ruling::Deny), None, None]);
        let effects = ["deny effect:files tool:a"];
        assert_eq!([("a", Effect::Files), ("a", Effect::Read), ("b", Effect::Files)].map(|(tool, e)| said(&effects, tool, &facts(e), AskPolicy::Ask)), [Some(Ruling::Deny), None, None]);
        assert_eq!(said(&["deny effect:host"], "x", &facts(Effect::Unknown), AskPolicy::Ask), None, "unknown is taken for the outside alone");
    }

    #[test]
    fn marks_belong_to_the_call_and_are_named_by_the_rule() {
        let marked = |irreversible, needs_person| Facts { irreversible, needs_person, ..facts(Effect::Files) };
        for (rule, fits) in [
            ("deny irreversible", [false, true, false, true]), ("deny needs-human", [false, false, true, true]), ("deny irreversible needs-human", [false, false, false, true]), ("deny effect:files", [true; 4]),
        ] {
            let found = [(false, false), (true, false), (false, true), (true, true)].map(|(i, n)| said(&[rule], "x", &marked(i, n), AskPolicy::Ask).is_some());
            assert_eq!(found, fits, "{rule}");
        }
        for (rule, answers) in [("allow effect:files", [true, false, false, false]), ("allow irreversible", [false, true, false, false]), ("allow needs-human", [false, false, true, false]), ("allow irreversible needs-human", [false, false, false, true])] {
            let found = [(false, false), (true, false), (false, true), (true, true)].map(|(i, n)| said(&[rule], "x", &marked(i, n), AskPolicy::Ask).is_some());
            assert_eq!(found, answers, "{rule}: an allowance answers for the marks it names");
        }
    }

    #[test]
    fn nobody_asked_means_an_asking_allows_and_an_asking_that_is_kept_asks() {
        let call = facts(Effect::Files);
        assert_eq!([AskPolicy::Ask, AskPolicy::Bypass, AskPolicy::Refuse].map(|ask| said(&["ask effect:files"], "x", &call, ask)), [Some(Ruling::Ask), Some(Ruling::Allow), Some(Ruling::Allow)]);
        assert_eq!([AskPolicy::Ask, AskPolicy::Bypass, AskPolicy::Refuse].map(|ask| said(&["allow effect:files", "deny tool:x"], "x", &call, ask)), [Some(Ruling::Deny); 3]);
        assert_eq!([AskPolicy::Ask, AskPolicy::Bypass, AskPolicy::Refuse].map(|ask| said(&["deny tool:x", "allow effect:files"], "x", &call, ask)), [Some(Ruling::Allow); 3]);
        let under = Rules::parse(&["ask effect:files", "allow tool:x", "deny tool:y"]).expect("rules");
        let then = |ask| under.under(ask).0.iter().map(|r| r.then).collect::<Vec<_>>();
        assert_eq!(then(AskPolicy::Ask), [Ruling::Ask, Ruling::Allow, Ruling::Deny]);
        assert_eq!([then(AskPolicy::Bypass), then(AskPolicy::Refuse)], [[Ruling::Allow, Ruling::Allow, Ruling::Deny]; 2].map(Vec::from));
    }

    #[test]
    fn a_star_is_any_run_and_everything_else_itself() {
        for (pattern, text, fits) in [
            ("", "", true), ("", "a", false), ("a", "", false), ("a*", "a", true), ("*a", "ba", true), ("*a", "ab", false), ("a*b*c", "a1b2c", true), ("a*b*c", "acb", false), ("*ab", "aab", true),
            ("a?c", "abc", false), ("ab", "ab", true), ("*abab", "abababab", true), ("a*bc*d", "abxbcd", true), ("*x*y", "xyxz", false),
        ] {
            assert_eq!(like(pattern, text), fits, "{pattern} {text}");
        }
    }
}
