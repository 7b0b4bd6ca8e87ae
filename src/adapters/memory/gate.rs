//! The gate that every asynchronous port call passes: it records the call, pauses, and fails or hangs where
//! it was told to. What a call does it does in one step between two pauses.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use super::locked;

/// How many calls are remembered; the oldest are forgotten first.
const CALLS_MAX: usize = 10_000;

/// What goes wrong with one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault<E> {
    None,
    /// The error is answered and nothing was done.
    Before(E),
    /// The error is answered although all was done.
    After(E),
    /// The call waits, nothing done, until it is released.
    HangBefore,
    /// All is done; the answer waits until it is released.
    HangAfter,
}

/// How one call goes: a pause lets other tasks run, or a crash happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan<E> {
    pub pauses_before: u32,
    pub fault: Fault<E>,
    pub pauses_after: u32,
}

impl<E> Plan<E> {
    /// Nothing goes wrong and nothing waits.
    pub fn smooth() -> Plan<E> {
        Plan { pauses_before: 0, fault: Fault::None, pauses_after: 0 }
    }
}

type Planner<C, E> = Box<dyn FnMut(C) -> Plan<E> + Send>;

/// The gate of all calls of kind `C`, which fail with `E`.
pub struct Gate<C, E>(Arc<Mutex<State<C, E>>>);

struct State<C, E> {
    scripts: BTreeMap<C, VecDeque<Fault<E>>>,
    planner: Option<Planner<C, E>>,
    calls: VecDeque<C>,
    held: BTreeMap<u64, Held<C>>,
    next_held: u64,
}

struct Held<C> {
    call: C,
    released: bool,
    waker: Option<Waker>,
}

impl<C, E> Clone for Gate<C, E> {
    fn clone(&self) -> Gate<C, E> {
        Gate(self.0.clone())
    }
}

impl<C, E> Default for Gate<C, E> {
    fn default() -> Gate<C, E> {
        Gate(Arc::new(Mutex::new(State {
            scripts: BTreeMap::new(),
            planner: None,
            calls: VecDeque::new(),
            held: BTreeMap::new(),
            next_held: 0,
        })))
    }
}

impl<C: Copy + Ord + Send, E: Send> Gate<C, E> {
    /// The next call of this kind that has no fault yet goes so. [`Fault::None`] lets one pass.
    pub fn script(&self, call: C, fault: Fault<E>) {
        locked(&self.0).scripts.entry(call).or_default().push_back(fault);
    }

    /// Every call without a script goes as `planner` says.
    pub fn plan_with(&self, planner: impl FnMut(C) -> Plan<E> + Send + 'static) {
        locked(&self.0).planner = Some(Box::new(planner));
    }

    /// From now on nothing goes wrong; what hangs stays until it is released.
    pub fn smooth(&self) {
        let mut state = locked(&self.0);
        state.scripts.clear();
        state.planner = None;
    }

    /// The calls since this was last asked, in the order in which they came.
    pub fn take_calls(&self) -> Vec<C> {
        locked(&self.0).calls.drain(..).collect()
    }

    /// How many calls of this kind hang now.
    pub fn hanging(&self, call: C) -> usize {
        locked(&self.0).held.values().filter(|held| held.call == call && !held.released).count()
    }

    /// Lets every call of this kind go on that hangs now.
    pub fn release(&self, call: C) {
        self.release_where(|held| held == call);
    }

    /// Lets every call go on that hangs now.
    pub fn release_all(&self) {
        self.release_where(|_| true);
    }

    fn release_where(&self, which: impl Fn(C) -> bool) {
        let mut wakers = Vec::new();
        for held in locked(&self.0).held.values_mut().filter(|held| which(held.call)) {
            held.released = true;
            wakers.extend(held.waker.take());
        }
        wakers.into_iter().for_each(Waker::wake);
    }

    /// One call: `act` is what it does, `error` makes the port's error of a fault.
    pub(super) async fn pass<T: Send, P: Send>(
        &self,
        call: C,
        act: impl FnOnce() -> Result<T, P> + Send,
        error: impl Fn(E) -> P + Send,
    ) -> Result<T, P> {
        self.pass_knowing(call, |_| act(), error).await
    }

    /// As `pass`; `act` is told whether its outcome will be answered, or an error in its place.
    pub(super) async fn pass_knowing<T: Send, P: Send>(
        &self,
        call: C,
        act: impl FnOnce(bool) -> Result<T, P> + Send,
        error: impl Fn(E) -> P + Send,
    ) -> Result<T, P> {
        let plan = self.enter(call);
        pause(plan.pauses_before).await;
        let answer = match plan.fault {
            Fault::None => act(true),
            Fault::Before(fault) => Err(error(fault)),
            Fault::After(fault) => act(false).and_then(|_| Err(error(fault))),
            Fault::HangBefore => {
                self.hang(call).await;
                act(true)
            }
            Fault::HangAfter => {
                let answer = act(true);
                self.hang(call).await;
                answer
            }
        };
        pause(plan.pauses_after).await;
        answer
    }

    fn enter(&self, call: C) -> Plan<E> {
        let mut state = locked(&self.0);
        if state.calls.len() == CALLS_MAX {
            state.calls.pop_front();
        }
        state.calls.push_back(call);
        if let Some(fault) = state.scripts.get_mut(&call).and_then(VecDeque::pop_front) {
            return Plan { fault, ..Plan::smooth() };
        }
        state.planner.as_mut().map_or_else(Plan::smooth, |planner| planner(call))
    }

    async fn hang(&self, call: C) {
        let place = HeldPlace { gate: self, id: self.hold(call) };
        poll_fn(|context| {
            let mut state = locked(&self.0);
            let Some(held) = state.held.get_mut(&place.id) else { return Poll::Ready(()) };
            if held.released {
                return Poll::Ready(());
            }
            held.waker = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn hold(&self, call: C) -> u64 {
        let mut state = locked(&self.0);
        let id = state.next_held;
        state.next_held += 1;
        state.held.insert(id, Held { call, released: false, waker: None });
        id
    }
}

/// Forgets a hanging call when it goes on, and also when its task is dropped.
struct HeldPlace<'a, C: Copy + Ord + Send, E: Send> {
    gate: &'a Gate<C, E>,
    id: u64,
}

impl<C: Copy + Ord + Send, E: Send> Drop for HeldPlace<'_, C, E> {
    fn drop(&mut self) {
        locked(&self.gate.0).held.remove(&self.id);
    }
}

/// Comes back as pending this many times, awake at once.
async fn pause(mut times: u32) {
    poll_fn(|context| {
        if times == 0 {
            return Poll::Ready(());
        }
        times -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    async fn call(gate: &Gate<u8, i32>, done: &Mutex<u32>) -> Result<(), i32> {
        let act = || {
            *locked(done) += 1;
            Ok(())
        };
        gate.pass(1, act, |fault| fault).await
    }

    #[test]
    fn a_call_fails_before_or_after_it_acted() {
        let (gate, done) = (Gate::default(), Mutex::new(0));
        gate.script(1, Fault::Before(5));
        gate.script(1, Fault::After(6));
        assert_eq!(call(&gate, &done).now_or_never(), Some(Err(5)));
        assert_eq!(*locked(&done), 0);
        assert_eq!(call(&gate, &done).now_or_never(), Some(Err(6)));
        assert_eq!(*locked(&done), 1);
        assert_eq!(call(&gate, &done).now_or_never(), Some(Ok(())));
        assert_eq!(gate.take_calls(), [1, 1, 1]);
    }

    #[test]
    fn a_call_hangs_until_it_is_released_or_dropped() {
        let (gate, done) = (Gate::default(), Mutex::new(0));
        gate.script(1, Fault::HangBefore);
        gate.script(1, Fault::HangAfter);
        let (mut before, mut after) = (Box::pin(call(&gate, &done)), Box::pin(call(&gate, &done)));
        assert_eq!((&mut before).now_or_never(), None);
        assert_eq!(*locked(&done), 0);
        assert_eq!((&mut after).now_or_never(), None);
        assert_eq!(*locked(&done), 1);
        assert_eq!(gate.hanging(1), 2);
        drop(after);
        assert_eq!(gate.hanging(1), 1);
        gate.release(1);
        assert_eq!(before.now_or_never(), Some(Ok(())));
        assert_eq!(*locked(&done), 2);
    }

    #[test]
    fn a_planned_pause_gives_way_once_for_each() {
        let (gate, done) = (Gate::default(), Mutex::new(0));
        gate.plan_with(|_| Plan { pauses_before: 1, fault: Fault::None, pauses_after: 1 });
        let mut going = Box::pin(call(&gate, &done));
        assert_eq!((&mut going).now_or_never(), None);
        assert_eq!(*locked(&done), 0);
        assert_eq!((&mut going).now_or_never(), None);
        assert_eq!(*locked(&done), 1);
        assert_eq!(going.now_or_never(), Some(Ok(())));
    }
}
