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
    /// Nobody is asked, the call runs ("bypass").
    Bypass,
    /// Nobody is asked, the call is refused ("autonomous").
    Refuse,
}

impl AskPolicy {
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

/// The mode shown to people for what is stored: `plan`, `default`, `bypass`, `autonomous`, or `custom` where no name fits.
pub fn shown_mode(posture: Posture, ask: AskPolicy) -> &'static str {
    match (posture, ask) {
        (Posture::Plan, AskPolicy::Ask) => "plan",
        (Posture::Default, AskPolicy::Ask) => "default",
        (Posture::Default, AskPolicy::Bypass) => "bypass",
        (Posture::Default, AskPolicy::Refuse) => "autonomous",
        _ => "custom",
    }
}

/// The modes a person may choose from.
pub const MODES: [&str; 4] = ["default", "plan", "bypass", "autonomous"];
