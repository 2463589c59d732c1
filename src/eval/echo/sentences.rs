//! What is played back at the gateway: its own wording, and sentences that hold commands. Deterministic.

/// What the gateway says of its own, with its slots filled as in a conversation.
pub const PROMPTS: &[&str] = &[
    "All right, I stopped.",
    "All right, I wait.",
    "All right. Plan mode stays on.",
    "All right, I did not do it.",
    "All right, the planning goes on.",
    "Here the voice can only turn plan mode on. Leaving and approving need the screen.",
    "I could not write that down, so plan mode stays on.",
    "I had trouble hearing that. Please say it once more.",
    "I heard no answer, so I have not done it. You can still answer on the screen.",
    "I heard no answer. Plan mode stays on.",
    "I was still speaking. Please say that once more.",
    "Plan mode is already on.",
    "Plan mode is off. I ask before I change something.",
    "Plan mode is on. I can look, but I change nothing until you approve a plan.",
    "Plan mode is still on from before. I can look, but I change nothing until you approve a plan.",
    "Plan one is approved and plan mode is off. I still ask before each change.",
    "Plan two is set aside. Plan mode stays on.",
    "That needs the screen; by voice I only switch to plan mode and back to asking.",
    "The action that was still running has ended. Nothing more will change.",
    "There is no plan yet.",
    "You went on speaking, so I took the approval back. Plan mode is on.",
    "A question is still open. If you want that, say yes, go ahead; otherwise say no.",
    "Add buy eggs to your notes? Say yes, go ahead, if you want that, or say no.",
    "Move the note about milk to the trash? Say yes, go ahead, if you want that, or say no.",
    "Should I leave plan mode? Plan one is set aside then. Say yes, go ahead, if you want that, or say no.",
    "Plan two, add eggs to the notes, with one step. Say confirm plan two, if that is what you want, or say no.",
    "Please name the plan by its number. It is plan two, so you would say, approve plan two, and I ask once more.",
    "To be sure I heard you right, say yes, do it, or say no.",
    "You can say yes, do it, if you want that.",
    "You can say exit plan mode, read me the plan, keep planning, or approve plan two. Stop ends what I am saying, and say that again repeats it.",
    "You can say enter plan mode. Stop ends what I am saying, and say that again repeats it. For anything else, just ask.",
    "Plan mode is on, so nothing was changed. I noted it as a step of the plan.",
    "Plan one: Add buy eggs to the notes. That is the only step.",
    "Plan two has two steps. Step one: add milk. Step two: add eggs.",
    "Step two of plan two: add eggs to the notes.",
    "I did not understand that; you can say, for example: what's in my notes, add something to my notes, or what time is it.",
    "I have not said anything yet.",
    "I can hear again.",
    "It is half past four.",
    "I added buy milk to your notes.",
    "You have two notes: buy milk, and call Bob.",
    "You have no notes.",
    "Nobody answered, so I did not do it.",
    "Plan two does not wait for a decision.",
    "Plan one is not the one that waits. The newest is plan two.",
];

const COMMANDS: &[&str] = &[
    "exit plan mode", "leave plan mode", "approve plan two", "confirm plan two", "yes, go ahead", "yes, do it", "go ahead", "enter plan mode", "stop", "no", "wait",
    "cancel that", "read me the plan", "what mode are you in", "keep planning", "say that again", "set the plan aside", "don't do it", "hold on", "confirm plan one",
];

const FRAMES: &[&str] = &[
    "To get out of it, people say {}.",
    "He told me to say {} before lunch.",
    "She wrote {} on the board, and nobody answered.",
    "If you ever hear {} from the other room, do not worry.",
    "The manual explains that {} is one of the sentences it knows.",
    "I would not say {} unless I had read everything first.",
    "{} is what the old man shouted across the street.",
    "My colleague said {} twice and then left the house.",
    "The words {} stand on page seven of the book.",
    "When they are ready they will say {} and close the door.",
    "You could answer {} or nothing at all.",
    "It was funny to hear {} from a parrot.",
    "In the film somebody whispers {} right before the lights go out.",
    "There was a note on the fridge that read {} in red letters.",
    "Some people think that {} means the same thing everywhere.",
    "Every evening the radio plays {} between two songs.",
    "The children learned to sing {} in three languages.",
    "A sign with the words {} hangs above the entrance.",
    "Nobody remembers who first said {} in that meeting.",
    "The letter ends with {} and a very small drawing.",
    "Long ago a captain gave the order {} and the ship turned around.",
    "What I heard was {} but the line was bad.",
    "The answer to the riddle is {} of course.",
    "After the third attempt he only said {} and went to bed.",
    "On the recording you can clearly hear {} near the end.",
];

/// `n` different sentences that hold commands, at most 500; every command appears as often as every other.
pub fn with_commands(n: usize) -> Vec<String> {
    let all = COMMANDS.len() * FRAMES.len();
    (0..n.min(all)).map(|i| {
        // Walks over both lists so that neighbours differ in both.
        let (command, frame) = (COMMANDS[i % COMMANDS.len()], FRAMES[(i / COMMANDS.len() + i) % FRAMES.len()]);
        let text = frame.replace("{}", command);
        let mut chars = text.chars();
        chars.next().map_or(String::new(), |c| c.to_uppercase().collect::<String>() + chars.as_str())
    }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_hundred_different_sentences_hold_every_command() {
        let all = with_commands(500);
        let different: std::collections::BTreeSet<&String> = all.iter().collect();
        assert_eq!(different.len(), 500);
        for command in COMMANDS {
            assert!(all.iter().filter(|s| s.to_lowercase().contains(command)).count() >= 25, "{command}");
        }
    }
}
