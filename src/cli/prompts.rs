//! The gateway's short sentences that are spoken most: rendered when it starts, so that a confirmation comes at once.
//!
//! Called by `setup`. A test finds each of them in the engine's own words, so that none is rendered that is never said.

/// The sentences, as the engine says them.
const PROMPTS: &[&str] = &[
    "Plan mode is on.", "Plan mode is already on.", "Plan mode is off. I ask before I change something.", "All right. Plan mode stays on.", "All right, I stopped.",
    "All right, I wait.", "Plan mode is on, so nothing was changed. I noted it as a step of the plan.", "No plan waits for a decision.",
    "I had trouble hearing that. Please say it once more.",
];

/// All of them in the pieces in which the voice gets them.
pub fn all() -> Vec<String> {
    let mut pieces = Vec::new();
    for prompt in PROMPTS {
        let mut segmenter = crate::engine::segment::Segmenter::default();
        pieces.extend(segmenter.push(prompt));
        pieces.extend(segmenter.finish());
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_said_by_the_engine() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/engine/session");
        let files = std::fs::read_dir(&folder).unwrap().map(|e| std::fs::read_to_string(e.unwrap().path()).unwrap());
        let words = files.collect::<String>();
        let strange: Vec<&&str> = PROMPTS.iter().filter(|p| !words.contains(&format!("\"{p}\""))).collect();
        assert!(strange.is_empty(), "the engine does not say {strange:?}");
        assert!(all().contains(&"I noted it as a step of the plan.".to_string()), "{:?}", all());
    }
}
