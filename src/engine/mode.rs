//! Posture, ask policy and autonomy: three facts that never write each other, and the list of modes shown for them.

/// Whether the agent may change things at all. Per conversation tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Posture {
    /// Calls run as the autonomy level lets them.
    #[default]
    Default,
    /// The agent may look and propose; nothing changes until a person approves its plan.
    Plan,
}

impl Posture {
    /// The stricter of two.
    pub fn stricter(self, other: Posture) -> Posture {
        if self == Posture::Plan || other == Posture::Plan { Posture::Plan } else { Posture::Default }
    }

    /// The word on the wire.
    pub fn word(self) -> &'static str { if self == Posture::Plan { "plan" } else { "default" } }
}

/// What happens when a call would be asked about. Per conversation tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum AskPolicy {
    /// A person is asked.
    #[default]
    Ask,
    /// Nobody is asked about classes of calls, they run; what cannot be undone or needs a person is asked about ("bypass").
    Bypass,
    /// As bypass, and what would still be asked about is refused ("autonomous").
    Refuse,
}

impl AskPolicy {
    /// What counts for a call that was made under `made`: a loosening holds for what is made after it.
    pub fn for_a_call_made_under(self, made: AskPolicy) -> AskPolicy { if made == AskPolicy::Ask { made } else { self } }

    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self { AskPolicy::Ask => "ask", AskPolicy::Bypass => "bypass", AskPolicy::Refuse => "refuse" }
    }
}

/// How much is asked about. Global and persisted; no mode change ever writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Autonomy {
    /// Everything that is not read-only is asked about.
    Strict,
    /// Files, host, external and unknown effects are asked about, unless the tool's tier is `safe`.
    #[default]
    Hybrid,
    /// Nothing is asked; what is denied stays denied.
    Loose,
}

impl Autonomy {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self { Autonomy::Strict => "strict", Autonomy::Hybrid => "hybrid", Autonomy::Loose => "loose" }
    }

    /// The level a word names.
    pub fn from_word(word: &str) -> Option<Autonomy> {
        [Autonomy::Strict, Autonomy::Hybrid, Autonomy::Loose].into_iter().find(|a| a.word() == word)
    }
}

/// The posture in force when a response began, and its number. Every call carries one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Stamp {
    /// Counts every change of posture in this conversation tree.
    pub epoch: u32,
    /// Posture at that epoch.
    pub posture: Posture,
}

/// A mode of the one list that people see. What is stored are posture and ask policy; a combination that no mode names is custom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The rules as they are; a person is asked.
    #[default]
    Default,
    /// The agent looks and proposes.
    Plan,
    /// Nobody is asked about classes of calls; what cannot be undone or needs a person is still asked about.
    Bypass,
    /// As bypass, and what would still be asked about is refused at once: nobody is there.
    Autonomous,
    /// Shown, never chosen.
    Custom,
}

impl Mode {
    /// What a person may choose from, in the order it is listed.
    pub const LIST: [Mode; 4] = [Mode::Default, Mode::Plan, Mode::Bypass, Mode::Autonomous];

    /// The mode shown for what is stored.
    pub fn of(posture: Posture, ask: AskPolicy) -> Mode {
        match (posture, ask) {
            (Posture::Plan, AskPolicy::Ask) => Mode::Plan,
            (Posture::Default, AskPolicy::Ask) => Mode::Default,
            (Posture::Default, AskPolicy::Bypass) => Mode::Bypass,
            (Posture::Default, AskPolicy::Refuse) => Mode::Autonomous,
            (Posture::Plan, AskPolicy::Bypass | AskPolicy::Refuse) => Mode::Custom,
        }
    }

    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self { Mode::Default => "default", Mode::Plan => "plan", Mode::Bypass => "bypass", Mode::Autonomous => "autonomous", Mode::Custom => "custom" }
    }

    /// What it does, in a sentence, for pickers.
    pub fn about(self) -> &'static str {
        match self {
            Mode::Default => "Changes are asked about as the autonomy level and the rules say.",
            Mode::Plan => "Looks and proposes; nothing is changed until you approve a plan.",
            Mode::Bypass => "Changes are made without asking; what is denied stays denied, what cannot be undone is still asked about.",
            Mode::Autonomous => "As bypass, and nobody is asked: what would still need an answer is refused.",
            Mode::Custom => "A combination that has no name.",
        }
    }

    /// The mode a word names; `None` for a word that names none, and for `custom`, which nobody can choose.
    pub fn from_word(word: &str) -> Option<Mode> { Mode::LIST.into_iter().find(|m| m.word() == word) }

    /// True where choosing it needs a screen and the organisation's leave.
    pub fn is_loose(self) -> bool { matches!(self, Mode::Bypass | Mode::Autonomous) }

    /// The ask policy it stands for, where it stands for one. Plan says nothing about it.
    pub fn ask(self) -> Option<AskPolicy> {
        match self {
            Mode::Default => Some(AskPolicy::Ask), Mode::Bypass => Some(AskPolicy::Bypass), Mode::Autonomous => Some(AskPolicy::Refuse),
            Mode::Plan | Mode::Custom => None,
        }
    }
}

/// How a completed plan is told while somebody listens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Telling {
    /// In a sentence.
    Speech,
    /// By a tone.
    #[default]
    Earcon,
    /// Not at all; mirrors show it.
    Silent,
}

/// How far a source of settings is trusted with a start mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// The organisation's settings.
    Managed,
    /// The operator's own.
    User,
    /// A file of a project folder, or a client that begins a session: it may tighten, never loosen.
    Project,
}

/// The mode a conversation starts in. `said`: what each source says, the one that wins first; words of other agents' settings
/// are understood (`manual`, `bypassPermissions`, `acceptEdits`, `auto`, `dontAsk`).
///
/// A loose mode counts only from a trusted source, and only where the organisation allows it. A source that wins and may not
/// say what it says gives default, and no lower source is asked.
pub fn start_mode(said: &[(Trust, &str)], loose_allowed: bool) -> Mode {
    let Some((trust, word)) = said.first() else { return Mode::Default };
    match start_word(word) {
        Some(mode) if mode.is_loose() && (*trust == Trust::Project || !loose_allowed) => Mode::Default,
        Some(mode) => mode,
        None => Mode::Default,
    }
}

/// The mode a word of a settings file names; `None` for a word that is no mode.
pub fn start_word(word: &str) -> Option<Mode> {
    match word {
        "manual" | "acceptEdits" | "auto" | "dontAsk" => Some(Mode::Default),
        "bypassPermissions" => Some(Mode::Bypass),
        other => Mode::from_word(other),
    }
}

/// The word of [`Mode::of`].
pub fn shown_mode(posture: Posture, ask: AskPolicy) -> &'static str { Mode::of(posture, ask).word() }

/// The modes a person may choose from.
pub const MODES: [&str; 4] = ["default", "plan", "bypass", "autonomous"];

#[cfg(test)]
mod tests {
    use super::*;

    const ASKS: [AskPolicy; 3] = [AskPolicy::Ask, AskPolicy::Bypass, AskPolicy::Refuse];

    #[test]
    fn ledger_l1_d18_d64_d65_modes_are_one_list_each_with_what_it_does() {
        assert_eq!(Mode::LIST.map(Mode::word), MODES);
        let about: Vec<&str> = Mode::LIST.iter().map(|m| m.about()).collect();
        assert!(about.iter().all(|a| a.ends_with('.')) && about.iter().collect::<std::collections::BTreeSet<_>>().len() == 4);
        for mode in Mode::LIST {
            assert_eq!(Mode::from_word(mode.word()), Some(mode));
        }
    }

    #[test]
    fn levels_and_policies_have_their_words() {
        for (level, word) in [(Autonomy::Strict, "strict"), (Autonomy::Hybrid, "hybrid"), (Autonomy::Loose, "loose")] {
            assert_eq!((level.word(), Autonomy::from_word(word)), (word, Some(level)));
        }
        assert_eq!(Autonomy::from_word("Loose"), None);
        assert_eq!(ASKS.map(AskPolicy::word), ["ask", "bypass", "refuse"]);
        assert_eq!([Mode::Default, Mode::Bypass, Mode::Autonomous].map(Mode::ask), ASKS.map(Some));
    }

    #[test]
    fn ledger_d10_d16_a_mode_is_a_plain_word_and_an_unknown_one_is_none() {
        for word in ["", "Plan", "custom", "acceptEdits", "yolo", "plan "] {
            assert_eq!(Mode::from_word(word), None, "{word}");
        }
        assert_eq!(Mode::from_word("default"), Some(Mode::Default), "default is a valid choice");
    }

    #[test]
    fn ledger_f2_d3_d51_each_combination_of_the_axes_is_shown_and_choosing_one_axis_says_nothing_of_the_other() {
        for (posture, ask) in [Posture::Default, Posture::Plan].into_iter().flat_map(|p| ASKS.map(|a| (p, a))) {
            let shown = Mode::of(posture, ask);
            assert_eq!(shown == Mode::Custom, posture == Posture::Plan && ask != AskPolicy::Ask);
            assert_eq!(shown_mode(posture, ask), shown.word());
        }
        assert_eq!(Mode::Plan.ask(), None, "choosing plan writes the posture alone");
    }

    #[test]
    fn ledger_l15_l16_words_of_other_settings_are_understood_and_their_in_between_modes_are_default() {
        for (word, mode) in [
            ("default", Mode::Default), ("manual", Mode::Default), ("plan", Mode::Plan), ("bypassPermissions", Mode::Bypass), ("autonomous", Mode::Autonomous),
            ("acceptEdits", Mode::Default), ("auto", Mode::Default), ("dontAsk", Mode::Default), ("nonsense", Mode::Default),
        ] {
            assert_eq!(start_mode(&[(Trust::User, word)], true), mode, "{word}");
        }
        assert_eq!(start_mode(&[], true), Mode::Default);
    }

    #[test]
    fn ledger_l17_l18_l19_a_project_may_tighten_and_never_loosen_and_what_wins_is_not_asked_around() {
        for word in ["bypassPermissions", "bypass", "autonomous"] {
            assert_eq!(start_mode(&[(Trust::Project, word), (Trust::User, "plan")], true), Mode::Default, "{word}: not what a lower source says");
            assert!(start_mode(&[(Trust::Managed, word)], true).is_loose() && start_mode(&[(Trust::User, word)], true).is_loose());
        }
        for trust in [Trust::Managed, Trust::User, Trust::Project] {
            assert_eq!(start_mode(&[(trust, "plan")], true), Mode::Plan, "what tightens counts from anywhere");
            assert_eq!(start_mode(&[(trust, "default"), (Trust::Managed, "bypass")], true), Mode::Default);
        }
    }

    #[test]
    fn ledger_l20_the_organisations_switch_keeps_a_start_out_of_loose_modes() {
        for (trust, word) in [(Trust::Managed, "bypass"), (Trust::User, "bypassPermissions"), (Trust::User, "autonomous")] {
            assert_eq!(start_mode(&[(trust, word)], false), Mode::Default);
        }
        assert_eq!(start_mode(&[(Trust::User, "plan")], false), Mode::Plan);
    }
}
