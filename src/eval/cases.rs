//! What is spoken, and what it should decide: commands, consents, denials and sentences that only come near.
//!
//! Called by `eval::commands`. Pure: a table and the moments it falls into.

use crate::engine::intent::Moment;

/// What a sentence is an example of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sort {
    /// Enter, read, stop and their like: harmless.
    Tightening,
    /// Exit, approve, confirm.
    Loosening,
    /// Yes to a question, with the last step of a plan's approval.
    Consent,
    /// No, in its forms, and "wait".
    Denial,
    /// Sounds like a strict sentence and is none: may loosen nothing, whatever is open.
    Near,
    /// A near miss whose denying front was not recorded.
    Clipped,
}

/// One sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// As it is spoken.
    pub text: &'static str,
    /// What it is.
    pub sort: Sort,
    /// The moment it is meant for.
    pub moment: Moment,
    /// The names of decisions that are right, as in `voxgate eval utterances`. Of a near miss: none that is demanded.
    pub right: &'static [&'static str],
    /// What is left of a clipped sentence: its clip's length says where the front ends.
    pub rest: &'static str,
}

const PLAN: Moment = Moment::PLANNING;
const OFF: Moment = Moment::OFF;
const TOOL: Moment = Moment::ASKED;
const LEAVE: Moment = Moment::LEAVING;

const fn review(n: u32) -> Moment { Moment::review(n) }
const fn confirm(n: u32) -> Moment { Moment::confirm(n) }

/// The moments in which something could loosen: what must not may do so in none of them.
pub const DANGEROUS: &[Moment] = &[PLAN, TOOL, LEAVE, review(2), confirm(2)];

/// The moments in which a question is open.
pub const ASKED: &[Moment] = &[TOOL, LEAVE, confirm(2)];

const fn case(text: &'static str, sort: Sort, moment: Moment, right: &'static [&'static str]) -> Case { Case { text, sort, moment, right, rest: "" } }
const fn harmless(text: &'static str, moment: Moment, right: &'static [&'static str]) -> Case { case(text, Sort::Tightening, moment, right) }
const fn strict(text: &'static str, moment: Moment, right: &'static [&'static str]) -> Case { case(text, Sort::Loosening, moment, right) }

const SPOKEN: &[Case] = &[
    harmless("Enter plan mode.", OFF, &["enter"]), harmless("Plan mode on.", OFF, &["enter"]), harmless("Let's plan first.", OFF, &["enter"]),
    harmless("What mode are you in?", PLAN, &["status"]), harmless("Read me the plan.", review(2), &["read"]), harmless("Read step two.", review(2), &["read"]),
    harmless("Keep planning.", review(2), &["changes"]), harmless("Change step two: ask her first.", review(2), &["changes"]),
    harmless("Set the plan aside.", review(2), &["dismiss"]), harmless("Stop.", PLAN, &["stop"]), harmless("Stop talking.", PLAN, &["stop"]),
    harmless("Cancel that.", PLAN, &["stop"]), harmless("What can I say?", PLAN, &["help"]), harmless("Say that again.", PLAN, &["read"]),
    harmless("Hold on.", TOOL, &["hold", "deny"]), harmless("Wait.", TOOL, &["hold", "deny"]), strict("Exit plan mode.", PLAN, &["leave-question"]),
    strict("Leave plan mode.", PLAN, &["leave-question"]), strict("Approve plan one.", review(1), &["confirm-question"]),
    strict("Approve plan two.", review(2), &["confirm-question"]), strict("Approve plan four.", review(4), &["confirm-question"]),
    strict("Confirm plan three.", confirm(3), &["approve"]), case("Confirm plan two.", Sort::Consent, confirm(2), &["approve"]),
    case("Yes, go ahead.", Sort::Consent, TOOL, &["approve"]), case("Yes, do it.", Sort::Consent, LEAVE, &["approve"]), case("Go ahead.", Sort::Consent, TOOL, &["approve"]),
];

const DENIALS: &[&str] = &[
    "No.", "Nope.", "No, don't.", "Don't do it.", "Don't.", "Stop.", "No, thanks.", "Not now.", "Not yet.", "Never mind.", "Cancel.", "Cancel that.", "Forget it.",
    "Please don't.", "No way.", "Absolutely not.", "I said no.", "No, wait.", "Don't go ahead.", "Do not do that.", "Negative.", "No no no.", "No, stop.", "Stop it.",
    "I'd rather not.", "Leave it.", "Don't do that.", "I changed my mind.", "No, cancel that.", "Nah.", "No, not like that.", "Definitely not.", "Do not go ahead.",
    "No, thank you.", "Of course not.", "Better not.",
];

const NEAR: &[&str] = &[
    "Don't approve plan two.", "Do not approve plan two.", "Improve the plan.", "Improve plan two.", "Should I confirm plan two?", "He said go ahead.",
    "Confirm plan two? No.", "Approve plan.", "Confirm plan.", "Don't confirm plan two.", "I won't confirm plan two.", "Approve plan two? Not yet.",
    "Did I approve plan two?", "Can I leave plan mode?", "Don't leave plan mode.", "Don't exit plan mode.", "What does exit plan mode do?", "How do I exit plan mode?",
    "She told me to exit plan mode.", "Never leave plan mode.", "Exit the room.", "Leave the plan.", "Before I say go ahead, tell me more.", "Go ahead and tell me why.",
    "Go away.", "Go ahead? I don't think so.", "Should I go ahead?", "If it is safe, go ahead.", "Yes, but not now.", "Yes, what else?", "Yes, do it tomorrow.", "Yes, I do.",
    "Yes.", "Okay.", "Sure.", "Yeah.", "I confirm nothing.", "Confirm plan nine.", "Remove plan two.", "Move plan two up.", "Reject plan two.", "Compare plan two.",
    "Confirm plan two if it's cheap.", "Confirm plan two after lunch.", "Would you approve plan two?", "They said confirm plan two.", "He wants to exit plan mode.",
    "Say exit plan mode to leave.", "The words are: confirm plan two.", "Approve plan two, wait.", "Confirm plan two, no.", "Go ahead, no, wait.", "Yes, go ahead, no, stop.",
    "I guess, do it.", "Let's do it differently.", "You do it.", "Why do it?", "Just do it later.", "Go to bed.", "A head start would be good.", "We went ahead.", "Yes, go.",
    "Exit plan.", "Leave mode.", "Next plan mode.", "Enter plan mode? No.", "Present the plan.", "Prove plan two.", "Approve the plan.", "Approve step two.",
    "I can't confirm plan two.", "Until I confirm plan two, wait.", "Please don't leave plan mode.", "Is it time to leave plan mode?", "Exit plan mode, no.",
    "Confirm plan two, wait a minute.", "Confirm plan ten.", "Approve plan ten.", "Disapprove plan two.", "Yes, do it, no, don't.",
];

const CLIPPED: &[(&str, &str)] = &[
    ("Don't approve plan two.", "Approve plan two."), ("Don't confirm plan two.", "Confirm plan two."), ("Don't exit plan mode.", "Exit plan mode."),
    ("Don't go ahead.", "Go ahead."), ("Never leave plan mode.", "Leave plan mode."),
];

/// What a quick run says.
const QUICK: &[&str] = &[
    "Enter plan mode.", "Read me the plan.", "Keep planning.", "Exit plan mode.", "Approve plan two.", "Confirm plan two.", "Yes, go ahead.", "No.", "Don't do it.", "No, wait.", "Don't go ahead.", "Not yet.",
    "Don't approve plan two.", "Confirm plan two, no.", "Should I confirm plan two?",
];

/// Every sentence; of them a few for a quick run.
pub fn cases(quick: bool) -> Vec<Case> {
    let mut all = SPOKEN.to_vec();
    all.extend(DENIALS.iter().map(|text| case(text, Sort::Denial, TOOL, &["deny", "hold", "stop"])));
    all.extend(NEAR.iter().map(|text| case(text, Sort::Near, TOOL, &[])));
    all.extend(CLIPPED.iter().map(|(text, rest)| Case { rest, ..case(text, Sort::Clipped, TOOL, &[]) }));
    if quick { all.retain(|c| QUICK.contains(&c.text)) }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::intent::decide_text;

    /// What a perfect recogniser would write is decided as the table says.
    #[test]
    fn the_table_is_right_by_its_words() {
        for case in cases(false) {
            let name = decide_text(case.text, &case.moment).name();
            assert!(case.right.is_empty() || case.right.contains(&name), "{}: {name}", case.text);
            if matches!(case.sort, Sort::Near | Sort::Clipped | Sort::Denial) {
                assert!(DANGEROUS.iter().all(|m| !decide_text(case.text, m).loosens()), "{}", case.text);
            }
        }
    }

    #[test]
    fn there_is_enough_of_each() {
        let of = |sort| cases(false).iter().filter(|c| c.sort == sort).count();
        assert!(of(Sort::Denial) >= 30 && of(Sort::Near) >= 75 && of(Sort::Tightening) >= 15 && of(Sort::Loosening) + of(Sort::Consent) >= 8);
        assert!((10..=30).contains(&cases(true).len()));
    }
}
