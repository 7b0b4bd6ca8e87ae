//! What kind of a world one seed lives in. Printed whole when an invariant breaks, and made calmer until only what it takes to
//! break it is left.

use per_node::domain::use_cases::driver::Brakes;

use crate::chance::Chance;

/// Drawn once from the seed. Rates are times in a thousand.
#[derive(Debug, Clone)]
pub struct Options {
    /// Steps under faults.
    pub steps: u32,
    pub handles: usize,
    pub pods_max: usize,
    /// How many pauses a port call has at most, before and after it acts.
    pub pauses_max: usize,
    pub node_faults: u32,
    pub hangs: u32,
    pub cluster_faults: u32,
    /// Calls of the API server that are never answered, until they are released.
    pub cluster_hangs: u32,
    pub event_faults: u32,
    /// How often, instead of a task going on, something happens in the world.
    pub world_acts: u32,
    pub crashes: bool,
    pub reboots: bool,
    pub restores: bool,
    pub other_clusters: bool,
    /// So many volumes that a proof waits for the watch.
    pub large_cluster: bool,
    pub full_disks: bool,
    pub read_only_stores: bool,
    pub stuck_files: bool,
    pub busy_targets: bool,
    pub subpaths: bool,
    pub calendar_jumps: bool,
    /// The kubelet gives up waiting for an answer; the call runs on.
    pub deadlines: bool,
    /// The kubelet calls again while a call for the volume is under way.
    pub overlaps: bool,
    /// A kubelet before 1.36.3: it forgets a volume on a final code also after its own restart.
    pub old_kubelet: bool,
    pub kubelet_restarts: bool,
    /// Two PersistentVolumes may name one handle.
    pub twin_volumes: bool,
    pub torn_records: bool,
    /// What an operator has put before the end of a copy (C26), and whether that changes from one process to the next.
    pub brakes: Brakes,
    pub flags_change: bool,
    /// Event series cannot always be written; then a restart may know a lower count.
    pub lost_series: bool,
}

impl Options {
    pub fn draw(chance: &mut Chance) -> Options {
        let mut rate = |rates: &[u32]| chance.pick(rates).unwrap_or_default();
        let (node_faults, hangs) = (rate(&[0, 0, 10, 40, 120]), rate(&[0, 0, 0, 10]));
        let (cluster_faults, event_faults) = (rate(&[0, 100, 400]), rate(&[0, 100, 500]));
        let cluster_hangs = rate(&[0, 0, 20]);
        let (world_acts, steps) = (rate(&[80, 200, 350]), rate(&[200, 400, 700]));
        let mut is = |times: u32| chance.in_thousand(times);
        Options {
            steps,
            node_faults,
            hangs,
            cluster_faults,
            cluster_hangs,
            event_faults,
            world_acts,
            crashes: is(700),
            reboots: is(300),
            restores: is(250),
            other_clusters: is(150),
            full_disks: is(250),
            read_only_stores: is(200),
            stuck_files: is(250),
            busy_targets: is(300),
            subpaths: is(300),
            calendar_jumps: is(300),
            deadlines: is(500),
            overlaps: is(400),
            old_kubelet: is(300),
            kubelet_restarts: is(500),
            twin_volumes: is(300),
            torn_records: is(200),
            lost_series: is(200),
            brakes: Brakes::default(),
            flags_change: true,
            handles: 1 + chance.below(3),
            pods_max: 2 + chance.below(5),
            pauses_max: chance.below(3),
            large_cluster: chance.in_thousand(400),
        }
    }
}

/// A name and what takes it out of a world.
type Calmer = (&'static str, fn(&mut Options));

/// What can be taken out of a world.
pub const CALMER: [Calmer; 25] = [
    ("restores", |options| options.restores = false),
    ("other_clusters", |options| options.other_clusters = false),
    ("sweep_limit", |options| options.brakes.sweep_limit = None),
    ("trash_for", |options| options.brakes.trash_for = None),
    ("flags_change", |options| options.flags_change = false),
    ("reboots", |options| options.reboots = false),
    ("torn_records", |options| options.torn_records = false),
    ("crashes", |options| options.crashes = false),
    ("hangs", |options| options.hangs = 0),
    ("cluster_hangs", |options| options.cluster_hangs = 0),
    ("cluster_faults", |options| options.cluster_faults = 0),
    ("event_faults", |options| options.event_faults = 0),
    ("node_faults", |options| options.node_faults = 0),
    ("lost_series", |options| options.lost_series = false),
    ("full_disks", |options| options.full_disks = false),
    ("read_only_stores", |options| options.read_only_stores = false),
    ("stuck_files", |options| options.stuck_files = false),
    ("busy_targets", |options| options.busy_targets = false),
    ("subpaths", |options| options.subpaths = false),
    ("calendar_jumps", |options| options.calendar_jumps = false),
    ("kubelet_restarts", |options| options.kubelet_restarts = false),
    ("deadlines", |options| options.deadlines = false),
    ("overlaps", |options| options.overlaps = false),
    ("twin_volumes", |options| options.twin_volumes = false),
    ("old_kubelet", |options| options.old_kubelet = false),
];

/// How much less than its seed says happens in a world.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Calm {
    pub steps_max: Option<u32>,
    /// Names of [`CALMER`].
    pub without: Vec<&'static str>,
}

impl Calm {
    /// Makes a world as calm as this.
    pub fn apply(&self, options: &mut Options) {
        options.steps = self.steps_max.map_or(options.steps, |max| options.steps.min(max));
        for (name, calm) in CALMER {
            if self.without.contains(&name) {
                calm(options);
            }
        }
    }
}
