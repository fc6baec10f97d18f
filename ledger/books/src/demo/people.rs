//! Who uses the simulated pool. Invented: any likeness is chance.

/// A project: what a Slurm account is called here.
#[derive(Debug)]
pub struct Project {
    /// Its name.
    pub name: &'static str,
    /// Who pays for it.
    pub org: &'static str,
    /// Who works in it.
    pub users: &'static [&'static str],
    /// How often it submits to train, infer, dev and batch, as weights.
    pub habits: [u32; 4],
    /// What its runs are called.
    pub words: &'static [&'static str],
    /// How busy its training keeps a card. Unit: thousandths.
    pub busy_milli: i64,
}

/// All projects: three organisations, nine projects, 25 people, two of them in two projects.
pub const PROJECTS: [Project; 9] = [
    Project {
        name: "grasping",
        org: "lumen-robotics",
        users: &["chen.wei", "a.okafor", "lin.yutong"],
        habits: [6, 2, 5, 8],
        words: &["grasp-bc", "grasp-rl", "tactile", "suction"],
        busy_milli: 560,
    },
    Project {
        name: "world-model",
        org: "lumen-robotics",
        users: &["zhao.rui", "m.petrov", "huang.jie", "s.iyer"],
        habits: [14, 1, 4, 2],
        words: &["wm-12b", "wm-3b", "wm-tokenizer", "wm-ablation"],
        busy_milli: 840,
    },
    Project {
        name: "speech-front",
        org: "lumen-robotics",
        users: &["guo.min", "t.nakamura"],
        habits: [4, 8, 3, 2],
        words: &["asr-stream", "wake-word", "tts-serve"],
        busy_milli: 610,
    },
    Project {
        name: "sim2real",
        org: "lumen-robotics",
        users: &["lin.yutong", "d.moreau", "xu.kai"],
        habits: [3, 1, 5, 14],
        words: &["isaac-rollout", "domain-rand", "replay"],
        busy_milli: 480,
    },
    Project {
        name: "climate-emulator",
        org: "harbor-institute",
        users: &["r.lindqvist", "wang.shuo", "e.duarte"],
        habits: [9, 2, 4, 5],
        words: &["era5-fno", "downscale", "ensemble"],
        busy_milli: 660,
    },
    Project {
        name: "reading-tutor",
        org: "harbor-institute",
        users: &["sun.jia", "k.mbeki", "p.novak"],
        habits: [5, 7, 6, 3],
        words: &["tutor-sft", "tutor-dpo", "tutor-serve", "eval-reading"],
        busy_milli: 720,
    },
    Project {
        name: "cryo-em",
        org: "meridian-bio",
        users: &["f.rossi", "ma.lei", "j.weber"],
        habits: [3, 0, 5, 12],
        words: &["particle-pick", "refine3d", "motioncor"],
        busy_milli: 430,
    },
    Project {
        name: "binder-design",
        org: "meridian-bio",
        users: &["tang.xin", "o.haddad", "j.weber"],
        habits: [8, 3, 4, 10],
        words: &["rfd-sample", "mpnn", "fold-check"],
        busy_milli: 770,
    },
    Project {
        name: "screening",
        org: "meridian-bio",
        users: &["luo.fang", "b.andersen", "he.ying"],
        habits: [2, 6, 3, 9],
        words: &["dock-batch", "admet-serve", "dock-rescore"],
        busy_milli: 390,
    },
];

/// The number the system knows a user by, as sacct shows it in `CANCELLED by 10003`.
pub fn uid(user: &str) -> u32 {
    let mut all: Vec<&str> = PROJECTS.iter().flat_map(|project| project.users).copied().collect();
    all.sort_unstable();
    all.dedup();
    10_001 + all.iter().position(|name| *name == user).expect("everyone is in PROJECTS") as u32
}
