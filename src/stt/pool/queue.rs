//! Who is heard next: commands before long talk, conversations by turns, and nothing that is of no more use.
//!
//! Pure; the pool puts in and takes out. Bounded: when it is full, a conversation with little waiting displaces the last of the
//! one with the most, so that nobody is kept out by another's flood.

use std::collections::VecDeque;

use crate::stt::Order;

/// After this many urgent ones in a row a waiting ordinary one is taken, so that it is late and not lost.
const URGENT_IN_A_ROW: usize = 4;

/// One that waits.
#[derive(Debug)]
struct Waiting<T> {
    look: bool,
    what: T,
}

/// Conversations of one rank, each with what it waits for; the first is served next.
#[derive(Debug)]
struct Lane<T>(VecDeque<(u64, VecDeque<Waiting<T>>)>);

impl<T> Lane<T> {
    fn push(&mut self, session: u64, waiting: Waiting<T>) {
        match self.0.iter_mut().find(|(of, _)| *of == session) {
            Some((_, line)) => line.push_back(waiting),
            None => self.0.push_back((session, VecDeque::from([waiting]))),
        }
    }

    fn pop(&mut self) -> Option<T> {
        let (session, mut line) = self.0.pop_front()?;
        let next = line.pop_front();
        if !line.is_empty() { self.0.push_back((session, line)) }
        next.map(|waiting| waiting.what)
    }

    fn of(&self, session: u64) -> usize { self.0.iter().find(|(of, _)| *of == session).map_or(0, |(_, line)| line.len()) }

    /// Takes the looks of a conversation out: newer sound makes them void.
    fn drop_looks(&mut self, session: u64, out: &mut Vec<T>) {
        for (_, line) in self.0.iter_mut().filter(|(of, _)| *of == session) {
            let (void, kept): (VecDeque<_>, VecDeque<_>) = std::mem::take(line).into_iter().partition(|w| w.look);
            *line = kept;
            out.extend(void.into_iter().map(|w| w.what));
        }
        self.0.retain(|(_, line)| !line.is_empty());
    }

    fn pop_last(&mut self, session: u64) -> Option<T> {
        let (_, line) = self.0.iter_mut().find(|(of, _)| *of == session)?;
        let last = line.pop_back();
        self.0.retain(|(_, line)| !line.is_empty());
        last.map(|waiting| waiting.what)
    }
}

/// What became of others when one came in.
#[derive(Debug, PartialEq, Eq)]
pub struct Entered<T> {
    /// Looks that the new one makes void.
    pub void: Vec<T>,
    /// One that had to make room.
    pub displaced: Option<T>,
}

/// See the file's head.
#[derive(Debug)]
pub struct Queue<T> {
    urgent: Lane<T>,
    ordinary: Lane<T>,
    most: usize,
    in_a_row: usize,
}

impl<T> Queue<T> {
    /// For at most so many.
    pub fn new(most: usize) -> Self {
        Self { urgent: Lane(VecDeque::new()), ordinary: Lane(VecDeque::new()), most, in_a_row: 0 }
    }

    /// How many wait.
    pub fn len(&self) -> usize { [&self.urgent, &self.ordinary].iter().flat_map(|lane| &lane.0).map(|(_, line)| line.len()).sum() }

    /// Lets one in.
    ///
    /// # Errors
    /// The one itself: all places are taken, and its own conversation has the most of them.
    pub fn push(&mut self, order: Order, what: T) -> Result<Entered<T>, T> {
        let mut entered = Entered { void: Vec::new(), displaced: None };
        if order.look {
            self.urgent.drop_looks(order.session, &mut entered.void);
            self.ordinary.drop_looks(order.session, &mut entered.void);
        }
        if self.len() >= self.most {
            match self.greediest().filter(|(_, count)| *count > self.of(order.session) + 1) {
                Some((session, _)) => entered.displaced = self.ordinary.pop_last(session).or_else(|| self.urgent.pop_last(session)),
                // A look that was void made room, or nothing did.
                None => return Err(what),
            }
        }
        let lane = if order.urgent { &mut self.urgent } else { &mut self.ordinary };
        lane.push(order.session, Waiting { look: order.look, what });
        Ok(entered)
    }

    /// The next one.
    pub fn pop(&mut self) -> Option<T> {
        let ordinary_is_due = self.in_a_row >= URGENT_IN_A_ROW && !self.ordinary.0.is_empty();
        if !ordinary_is_due && let Some(next) = self.urgent.pop() {
            self.in_a_row += 1;
            return Some(next);
        }
        self.in_a_row = 0;
        self.ordinary.pop()
    }

    fn of(&self, session: u64) -> usize { self.urgent.of(session) + self.ordinary.of(session) }

    fn greediest(&self) -> Option<(u64, usize)> {
        let sessions = [&self.urgent, &self.ordinary].into_iter().flat_map(|lane| lane.0.iter().map(|(session, _)| *session));
        sessions.map(|session| (session, self.of(session))).max_by_key(|(_, count)| *count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(session: u64) -> Order { Order { session, ..Order::default() } }
    fn urgent(session: u64) -> Order { Order { urgent: true, ..order(session) } }
    fn look(session: u64) -> Order { Order { look: true, ..order(session) } }
    fn all(queue: &mut Queue<&'static str>) -> Vec<&'static str> { std::iter::from_fn(|| queue.pop()).collect() }

    #[test]
    fn conversations_are_served_by_turns() {
        let mut queue = Queue::new(20);
        for what in ["a1", "a2", "a3", "a4"] { queue.push(order(1), what).unwrap(); }
        for what in ["b1", "b2"] { queue.push(order(2), what).unwrap(); }
        queue.push(order(3), "c1").unwrap();
        assert_eq!(all(&mut queue), ["a1", "b1", "c1", "a2", "b2", "a3", "a4"]);
    }

    #[test]
    fn commands_come_first_and_long_talk_is_not_starved() {
        let mut queue = Queue::new(20);
        queue.push(order(1), "talk").unwrap();
        for what in ["u1", "u2", "u3", "u4", "u5", "u6"] { queue.push(urgent(2), what).unwrap(); }
        queue.push(urgent(3), "v1").unwrap();
        assert_eq!(all(&mut queue), ["u1", "v1", "u2", "u3", "talk", "u4", "u5", "u6"]);
    }

    #[test]
    fn a_newer_look_makes_the_older_void_and_nothing_else() {
        let mut queue = Queue::new(20);
        queue.push(order(1), "commit").unwrap();
        queue.push(look(1), "look 1").unwrap();
        queue.push(look(2), "another's").unwrap();
        let entered = queue.push(Order { look: true, ..urgent(1) }, "look 2").unwrap();
        assert_eq!(entered, Entered { void: vec!["look 1"], displaced: None });
        assert_eq!((queue.len(), all(&mut queue)), (3, vec!["look 2", "commit", "another's"]));
    }

    #[test]
    fn a_flood_gives_way_to_whoever_has_little_waiting() {
        let mut queue = Queue::new(4);
        for what in ["a1", "a2", "a3", "a4"] { queue.push(order(1), what).unwrap(); }
        assert_eq!(queue.push(order(1), "a5"), Err("a5"));
        assert_eq!(queue.push(order(2), "b1").unwrap().displaced, Some("a4"));
        assert_eq!(queue.push(order(2), "b2").unwrap().displaced, Some("a3"));
        assert_eq!(queue.push(order(2), "b3"), Err("b3"), "both have half");
        assert_eq!(queue.push(urgent(3), "c1").unwrap().displaced.map(|_| queue.len()), Some(4));
        assert_eq!(queue.push(look(1), "look"), Err("look"), "no place");
    }
}
