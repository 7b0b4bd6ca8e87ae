//! How long a property is tried, where its failures are kept, and bytes that are mutated from a corpus.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence, TestCaseError, TestError, TestRunner};
use tempfile::TempDir;

/// How many properties there are: they share the time.
const PROPERTIES: u32 = 14;
/// Inputs between two looks at the clock.
const BATCH: u32 = 64;
/// The variable that says for how many seconds all of them run.
const SECONDS: &str = "PER_NODE_FUZZ_SECONDS";

/// How much a property is tried.
enum Budget {
    Cases(u32),
    Time(Duration),
}

fn budget(cases: u32) -> Budget {
    let Ok(seconds) = std::env::var(SECONDS) else { return Budget::Cases(cases) };
    let seconds: u32 = seconds.parse().unwrap_or_else(|_| panic!("{SECONDS} is a number of seconds"));
    let at_once = std::thread::available_parallelism().map_or(1, |threads| threads.get() as u32);
    Budget::Time(Duration::from_secs(seconds.into()) * at_once.min(PROPERTIES) / PROPERTIES)
}

/// Tries a property: first what has failed before, then `cases` inputs, or as many as the time allows.
pub fn fuzz<S: Strategy>(
    name: &'static str,
    cases: u32,
    strategy: &S,
    property: impl Fn(S::Value) -> Result<(), TestCaseError>,
) {
    let began = Instant::now();
    let mut tried = 0;
    loop {
        let batch = match budget(cases) {
            Budget::Cases(cases) => cases,
            Budget::Time(_) => BATCH.min(cases),
        };
        let kept: &'static str = format!("tests/fuzz/regressions/{name}.txt").leak();
        let config = Config {
            cases: batch,
            failure_persistence: Some(Box::new(FileFailurePersistence::Direct(kept))),
            source_file: Some(file!()),
            max_shrink_iters: 4096,
            ..Config::default()
        };
        match TestRunner::new(config).run(strategy, &property) {
            Ok(()) => tried += batch,
            Err(TestError::Fail(why, input)) => panic!("{name}: {why}\nthe smallest input: {input:?}"),
            Err(TestError::Abort(why)) => panic!("{name}: given up: {why}"),
        }
        match budget(cases) {
            Budget::Cases(_) => break,
            Budget::Time(limit) if began.elapsed() >= limit => break,
            Budget::Time(_) => {}
        }
    }
    println!("{name}: {tried} inputs in {:.0?}", began.elapsed());
}

/// The files of a part of the corpus, in the order of their names.
pub fn corpus(part: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(part);
    let mut paths: Vec<_> =
        fs::read_dir(&directory).expect("the corpus").map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} is empty", directory.display());
    paths.iter().map(|path| fs::read(path).expect("a file of the corpus")).collect()
}

/// A directory that goes with the case, in memory where the machine has such a place.
pub fn scratch() -> TempDir {
    let in_memory = Path::new("/dev/shm");
    if in_memory.is_dir() { TempDir::new_in(in_memory) } else { TempDir::new() }.expect("a directory")
}

/// One change of some bytes; positions are taken modulo the length.
#[derive(Debug, Clone)]
pub enum Mutation {
    Set(usize, u8),
    Flip(usize, u8),
    Insert(usize, Vec<u8>),
    Delete(usize, usize),
    Repeat(usize, usize),
    Cut(usize),
    /// Goes on with a part of another file of the corpus.
    Splice(usize, usize, usize),
}

fn mutation(words: &'static [&'static str], reach: u16) -> impl Strategy<Value = Mutation> {
    let at = (0..reach).prop_map(usize::from);
    let length = 0..64usize;
    let word = prop::sample::select(words.to_vec()).prop_map(|word| word.as_bytes().to_vec());
    prop_oneof![
        3 => (at.clone(), any::<u8>()).prop_map(|(at, byte)| Mutation::Set(at, byte)),
        3 => (at.clone(), 0..8u8).prop_map(|(at, bit)| Mutation::Flip(at, 1 << bit)),
        2 => (at.clone(), vec(any::<u8>(), 0..12)).prop_map(|(at, bytes)| Mutation::Insert(at, bytes)),
        4 => (at.clone(), word).prop_map(|(at, bytes)| Mutation::Insert(at, bytes)),
        3 => (at.clone(), length.clone()).prop_map(|(at, length)| Mutation::Delete(at, length)),
        2 => (at.clone(), length).prop_map(|(at, length)| Mutation::Repeat(at, length)),
        1 => at.clone().prop_map(Mutation::Cut),
        1 => (at.clone(), at.clone(), at).prop_map(|(at, file, from)| Mutation::Splice(at, file, from)),
    ]
}

/// Bytes that are near a file of the corpus; `words` are put in where only a whole word leads further.
pub fn mutated(part: &str, words: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> + use<> {
    let files = corpus(part);
    let count = files.len();
    (0..count, vec(mutation(words, u16::MAX), 0..6)).prop_map(move |(file, mutations)| {
        mutations.iter().fold(files[file].clone(), |bytes, mutation| mutate(bytes, mutation, &files))
    })
}

/// The same of bytes that are given; changes lie not farther than `reach` from their beginning.
pub fn mutations(reach: u16) -> impl Strategy<Value = Vec<Mutation>> {
    vec(mutation(&[" ", "\n", "0"], reach), 0..6)
}

pub fn mutate(mut bytes: Vec<u8>, mutation: &Mutation, files: &[Vec<u8>]) -> Vec<u8> {
    let place = |at: usize| at % (bytes.len() + 1);
    match mutation {
        Mutation::Set(at, byte) => {
            let at = place(*at);
            bytes.get_mut(at).into_iter().for_each(|there| *there = *byte);
        }
        Mutation::Flip(at, bit) => {
            let at = place(*at);
            bytes.get_mut(at).into_iter().for_each(|there| *there ^= bit);
        }
        Mutation::Insert(at, more) => drop(bytes.splice(place(*at)..place(*at), more.iter().copied())),
        Mutation::Delete(at, length) => {
            let from = place(*at);
            bytes.drain(from..(from + length).min(bytes.len()));
        }
        Mutation::Repeat(at, length) => {
            let from = place(*at);
            let again = bytes[from..(from + length).min(bytes.len())].to_vec();
            drop(bytes.splice(from..from, again));
        }
        Mutation::Cut(at) => bytes.truncate(place(*at)),
        Mutation::Splice(at, file, from) => {
            let other = &files[file % files.len()];
            bytes.truncate(place(*at));
            bytes.extend(&other[from % (other.len() + 1)..]);
        }
    }
    bytes
}
