//! Scores the phrases of the spoken grammar against the sound, through a decoder that tells the odds of the next token.
//!
//! Owns the tree of all spellings and its depth-first walk. Called by the engine proper after the encoder ran. Knows nothing of
//! Whisper itself, so that it is tested with a decoder made of a table.

use std::collections::BTreeMap;

use crate::engine::heard::{PhraseId, PhraseScore};

/// A decoder that can be put back: decoding at `past` forgets everything from there on.
pub trait Decoder {
    /// What can go wrong in it.
    type Error;
    /// Decodes one token behind `past` others.
    fn step(&mut self, token: i32, past: usize) -> Result<(), Self::Error>;
    /// Unnormalised odds of what follows, one for each token of the vocabulary.
    fn logits(&self) -> Result<&[f32], Self::Error>;
}

/// The tokens that may end a sentence.
#[derive(Clone, Copy, Debug)]
pub struct Marks {
    /// End of text.
    pub end: i32,
    /// "."
    pub stop: i32,
    /// "!"
    pub bang: i32,
    /// "?"
    pub question: i32,
}

/// No rule accepts a phrase below this, and rivals below it are no rivals (nats). Keeps noise, whose free transcript is
/// unlikely itself, from walking the whole tree.
const FLOOR: f32 = -16.0;
/// A closing mark less likely than this adds nothing that counts.
const RARE_MARK: f32 = -4.0;

#[derive(Default)]
struct Node {
    next: BTreeMap<i32, usize>,
    ends: Vec<usize>,
    /// The widest margin of the phrases below.
    margin: f32,
}

struct Row {
    id: PhraseId,
    question: bool,
}

/// All spellings of all phrases, as one tree of tokens.
pub struct Trie {
    nodes: Vec<Node>,
    rows: Vec<Row>,
}

impl Default for Trie {
    fn default() -> Self {
        Self { nodes: vec![Node::default()], rows: Vec::new() }
    }
}

impl Trie {
    /// True when there is nothing to score.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds a phrase with its spellings as tokens. `margin`: how many nats below the free transcript it is still followed.
    pub fn add(&mut self, id: PhraseId, question: bool, margin: f32, spellings: &[Vec<i32>]) {
        let row = self.rows.len();
        self.rows.push(Row { id, question });
        for spelling in spellings {
            let mut at = 0;
            self.nodes[0].margin = self.nodes[0].margin.max(margin);
            for token in spelling {
                at = self.child(at, *token);
                self.nodes[at].margin = self.nodes[at].margin.max(margin);
            }
            // Two spellings may be the same tokens; they are one way to write it.
            if at != 0 && !self.nodes[at].ends.contains(&row) {
                self.nodes[at].ends.push(row);
            }
        }
    }

    fn child(&mut self, at: usize, token: i32) -> usize {
        if let Some(found) = self.nodes[at].next.get(&token) {
            return *found;
        }
        self.nodes.push(Node::default());
        let new = self.nodes.len() - 1;
        self.nodes[at].next.insert(token, new);
        new
    }

    /// Whether these tokens are one of the spellings, with or without a closing mark.
    pub fn holds(&self, tokens: &[i32], marks: Marks) -> bool {
        let words = match tokens {
            [words @ .., last] if [marks.stop, marks.bang, marks.question].contains(last) => words,
            all => all,
        };
        let end = words.iter().try_fold(0, |at, token| self.nodes[at].next.get(token).copied());
        end.is_some_and(|at| !self.nodes[at].ends.is_empty())
    }

    /// Walks the tree. The decoder stands behind `past` tokens with their logits fresh; `free` is the log-probability of the
    /// free transcript, `widest` what no margin is wider than. Gives the phrases that were reached, the best first.
    ///
    /// # Errors
    /// The decoder's.
    pub fn score<D: Decoder>(&self, decoder: &mut D, past: usize, free: f32, widest: f32, marks: Marks) -> Result<Vec<PhraseScore>, D::Error> {
        let mut walk = Walk { trie: self, decoder, free, widest, marks, sums: vec![f32::NEG_INFINITY; self.rows.len()] };
        walk.visit(0, past, 0.0)?;
        let sums = walk.sums.into_iter().zip(&self.rows).filter(|(ll, _)| ll.is_finite());
        let mut scores: Vec<_> = sums.map(|(ll, row)| PhraseScore { id: row.id, ll }).collect();
        scores.sort_by(|one, other| other.ll.total_cmp(&one.ll));
        Ok(scores)
    }
}

struct Walk<'a, D> {
    trie: &'a Trie,
    decoder: &'a mut D,
    free: f32,
    widest: f32,
    marks: Marks,
    sums: Vec<f32>,
}

impl<D: Decoder> Walk<'_, D> {
    /// The decoder's logits are those behind `node`. Depth is that of the longest spelling, which is bounded when it is added.
    fn visit(&mut self, node: usize, past: usize, ll: f32) -> Result<(), D::Error> {
        let node = &self.trie.nodes[node];
        // Everything that is read from the logits, before the next step overwrites them.
        let logits = self.decoder.logits()?;
        let total = log_sum_exp(logits);
        let odds = |token: i32| at(logits, token) - total;
        let next: Vec<_> = node.next.iter().map(|(token, child)| (*token, *child, ll + odds(*token))).collect();
        let (end, marks) = (odds(self.marks.end), [self.marks.stop, self.marks.bang, self.marks.question].map(|m| (m, odds(m))));
        if !node.ends.is_empty() {
            self.close(&node.ends, past, ll, end, marks, node.margin)?;
        }
        for (token, child, ll) in next {
            if ll > self.threshold(self.trie.nodes[child].margin) {
                self.decoder.step(token, past)?;
                self.visit(child, past + 1, ll)?;
            }
        }
        Ok(())
    }

    fn threshold(&self, margin: f32) -> f32 {
        (self.free - margin.min(self.widest)).max(FLOOR)
    }

    /// Adds the ways to end here: at once, or behind a closing mark.
    fn close(
        &mut self, ends: &[usize], past: usize, ll: f32, end: f32, marks: [(i32, f32); 3], margin: f32,
    ) -> Result<(), D::Error> {
        let asks = ends.iter().any(|row| self.trie.rows[*row].question);
        let (mut plain, mut asked) = (end, f32::NEG_INFINITY);
        for (mark, odds) in marks {
            let question = mark == self.marks.question;
            if (question && !asks) || odds <= RARE_MARK || ll + odds <= self.threshold(margin) {
                continue;
            }
            self.decoder.step(mark, past)?;
            let logits = self.decoder.logits()?;
            let closed = odds + at(logits, self.marks.end) - log_sum_exp(logits);
            if question { asked = closed } else { plain = log_add(plain, closed) }
        }
        for row in ends {
            let way = if self.trie.rows[*row].question { log_add(plain, asked) } else { plain };
            self.sums[*row] = log_add(self.sums[*row], ll + way);
        }
        Ok(())
    }
}

fn at(logits: &[f32], token: i32) -> f32 {
    usize::try_from(token).ok().and_then(|token| logits.get(token)).copied().unwrap_or(f32::NEG_INFINITY)
}

/// log(sum(exp(x))), the total that turns logits into log-probabilities.
pub fn log_sum_exp(values: &[f32]) -> f32 {
    let most = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    if most.is_finite() { most + values.iter().map(|value| (value - most).exp()).sum::<f32>().ln() } else { most }
}

/// log(exp(a) + exp(b)).
fn log_add(a: f32, b: f32) -> f32 {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    if low == f32::NEG_INFINITY { high } else { high + (low - high).exp().ln_1p() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    /// Prefixes, and the probabilities of what follows each.
    type Odds = Vec<(Vec<i32>, Vec<(i32, f32)>)>;

    /// A decoder that reads from a table; what is not in it is impossible.
    struct Table {
        odds: Odds,
        prefix: Vec<i32>,
        logits: Vec<f32>,
        steps: usize,
    }

    impl Table {
        fn new(odds: Odds) -> Self {
            let mut table = Self { odds, prefix: Vec::new(), logits: Vec::new(), steps: 0 };
            table.fill();
            table
        }

        fn fill(&mut self) {
            self.logits = vec![-50.0; 10];
            if let Some((_, list)) = self.odds.iter().find(|(prefix, _)| *prefix == self.prefix) {
                list.iter().for_each(|(token, p)| self.logits[*token as usize] = p.ln());
            }
        }
    }

    impl Decoder for Table {
        type Error = Infallible;
        fn step(&mut self, token: i32, past: usize) -> Result<(), Infallible> {
            self.prefix.truncate(past);
            self.prefix.push(token);
            self.steps += 1;
            self.fill();
            Ok(())
        }
        fn logits(&self) -> Result<&[f32], Infallible> {
            Ok(&self.logits)
        }
    }

    const MARKS: Marks = Marks { end: 0, stop: 7, bang: 8, question: 9 };

    /// "1 2" is likely, with and without a full stop; "1 3" is not; both spellings 2 and 4 mean the same.
    fn table() -> Table {
        Table::new(vec![
            (vec![], vec![(1, 0.9), (5, 0.1)]),
            (vec![1], vec![(2, 0.5), (4, 0.3), (3, 0.2)]),
            (vec![1, 2], vec![(0, 0.5), (7, 0.5)]),
            (vec![1, 2, 7], vec![(0, 1.0)]),
            (vec![1, 4], vec![(0, 0.2), (9, 0.8)]),
            (vec![1, 4, 9], vec![(0, 1.0)]),
            (vec![1, 3], vec![(0, 1.0)]),
        ])
    }

    fn trie(question: bool, margin: f32) -> Trie {
        let mut trie = Trie::default();
        trie.add(7, question, margin, &[vec![1, 2], vec![1, 4], vec![1, 2]]);
        trie.add(8, false, margin, &[vec![1, 3]]);
        trie.add(9, false, margin, &[vec![6, 6]]);
        trie
    }

    fn scores(trie: &Trie, free: f32) -> Vec<(PhraseId, f32)> {
        let scores = trie.score(&mut table(), 0, free, f32::INFINITY, MARKS).unwrap();
        scores.into_iter().map(|score| (score.id, (score.ll.exp() * 1000.0).round())).collect()
    }

    #[test]
    fn spellings_and_closing_marks_add_up() {
        // 0.9 * (0.5 * (0.5 + 0.5) + 0.3 * 0.2) and 0.9 * 0.2; the third phrase was never reached.
        assert_eq!(scores(&trie(false, 10.0), -1.0), [(7, 504.0), (8, 180.0)]);
    }

    #[test]
    fn a_question_mark_counts_for_questions_only() {
        assert_eq!(scores(&trie(true, 10.0), -1.0)[0], (7, 720.0));
    }

    #[test]
    fn what_falls_below_the_margin_is_not_walked() {
        let mut decoder = table();
        let narrow = trie(false, 1.0).score(&mut decoder, 0, 0.0, f32::INFINITY, MARKS).unwrap();
        assert_eq!(narrow.iter().map(|score| score.id).collect::<Vec<_>>(), [7]);
        let few = decoder.steps;
        let mut decoder = table();
        trie(false, 10.0).score(&mut decoder, 0, 0.0, f32::INFINITY, MARKS).unwrap();
        assert!(few < decoder.steps);
    }

    #[test]
    fn a_written_sentence_is_known_and_narrows_every_margin() {
        let wide = trie(false, 10.0);
        assert!(wide.holds(&[1, 4], MARKS) && wide.holds(&[1, 2, 7], MARKS));
        assert!(!wide.holds(&[1], MARKS) && !wide.holds(&[1, 2, 2], MARKS) && !wide.holds(&[], MARKS));
        let found = wide.score(&mut table(), 0, 0.0, 1.0, MARKS).unwrap();
        assert_eq!(found.iter().map(|score| score.id).collect::<Vec<_>>(), [7]);
    }

    #[test]
    fn margins_belong_to_phrases() {
        let mut trie = Trie::default();
        trie.add(1, false, 0.9, &[vec![1, 2]]);
        trie.add(2, false, 5.0, &[vec![1, 3]]);
        let found = trie.score(&mut table(), 0, 0.0, f32::INFINITY, MARKS).unwrap();
        assert_eq!(found.iter().map(|score| score.id).collect::<Vec<_>>(), [1, 2]);
        let mut trie = Trie::default();
        trie.add(1, false, 0.9, &[vec![1, 2]]);
        trie.add(2, false, 1.5, &[vec![1, 3]]);
        let found = trie.score(&mut table(), 0, 0.0, f32::INFINITY, MARKS).unwrap();
        assert_eq!(found.iter().map(|score| score.id).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn logarithms_of_nothing_stay_nothing() {
        assert_eq!(log_add(f32::NEG_INFINITY, -1.0), -1.0);
        assert_eq!(log_add(f32::NEG_INFINITY, f32::NEG_INFINITY), f32::NEG_INFINITY);
        assert!((log_add(0.5_f32.ln(), 0.25_f32.ln()).exp() - 0.75).abs() < 1e-6);
    }
}
