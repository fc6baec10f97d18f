//! What kinds of cards are, where a scenario doesn't say otherwise.

/// What is the same for all cards of a kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Preset {
    pub model: &'static str,
    /// NVML's number of the architecture: 5 Volta, 6 Turing, 7 Ampere, 8 Ada, 9 Hopper, 10 Blackwell.
    pub architecture: u32,
    pub compute: (i32, i32),
    pub memory_mib: u64,
    pub reserved_mib: u64,
    pub power_limit_w: u32,
    /// Compute slices it can be cut into; none where it can't.
    pub slices: Option<u32>,
    pub multiprocessors: u32,
    pub has_gpm: bool,
    pub has_ecc: bool,
    /// Links to other cards.
    pub links: u32,
    /// Calls that answer that they are not supported.
    pub unsupported: &'static [&'static str],
}

const DATACENTRE: Preset = Preset {
    model: "",
    architecture: 0,
    compute: (0, 0),
    memory_mib: 0,
    reserved_mib: 600,
    power_limit_w: 0,
    slices: None,
    multiprocessors: 0,
    has_gpm: false,
    has_ecc: true,
    links: 0,
    unsupported: &[],
};

/// The kinds there are, by the name that a scenario uses.
pub(crate) fn preset(name: &str) -> Option<Preset> {
    Some(match name {
        "t4" => Preset {
            model: "Tesla T4",
            architecture: 6,
            compute: (7, 5),
            memory_mib: 15_360,
            reserved_mib: 438,
            power_limit_w: 70,
            multiprocessors: 40,
            ..DATACENTRE
        },
        "v100" => Preset {
            model: "Tesla V100-SXM2-32GB",
            architecture: 5,
            compute: (7, 0),
            memory_mib: 32_768,
            power_limit_w: 300,
            multiprocessors: 80,
            links: 6,
            ..DATACENTRE
        },
        "a100" => Preset {
            model: "NVIDIA A100-SXM4-80GB",
            architecture: 7,
            compute: (8, 0),
            memory_mib: 81_920,
            power_limit_w: 400,
            slices: Some(7),
            multiprocessors: 108,
            links: 12,
            ..DATACENTRE
        },
        "a30" => Preset {
            model: "NVIDIA A30",
            architecture: 7,
            compute: (8, 0),
            memory_mib: 24_576,
            power_limit_w: 165,
            slices: Some(4),
            multiprocessors: 56,
            ..DATACENTRE
        },
        "l40s" => Preset {
            model: "NVIDIA L40S",
            architecture: 8,
            compute: (8, 9),
            memory_mib: 46_068,
            power_limit_w: 350,
            multiprocessors: 142,
            ..DATACENTRE
        },
        "h100" => Preset {
            model: "NVIDIA H100 80GB HBM3",
            architecture: 9,
            compute: (9, 0),
            memory_mib: 81_559,
            power_limit_w: 700,
            slices: Some(7),
            multiprocessors: 132,
            has_gpm: true,
            links: 18,
            ..DATACENTRE
        },
        "h200" => Preset {
            model: "NVIDIA H200",
            architecture: 9,
            compute: (9, 0),
            memory_mib: 143_771,
            reserved_mib: 614,
            power_limit_w: 700,
            slices: Some(7),
            multiprocessors: 132,
            has_gpm: true,
            links: 18,
            ..DATACENTRE
        },
        "rtx2080" => Preset {
            model: "NVIDIA GeForce RTX 2080 SUPER",
            architecture: 6,
            compute: (7, 5),
            memory_mib: 8_192,
            reserved_mib: 225,
            power_limit_w: 250,
            multiprocessors: 48,
            has_ecc: false,
            unsupported: &["nvmlDeviceGetSerial", "nvmlDeviceGetRemappedRows"],
            ..DATACENTRE
        },
        "pascal" => Preset {
            model: "Tesla P100-PCIE-16GB",
            architecture: 4,
            compute: (6, 0),
            memory_mib: 16_384,
            power_limit_w: 250,
            multiprocessors: 56,
            unsupported: &["nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetRemappedRows"],
            ..DATACENTRE
        },
        "gb10" => Preset {
            model: "NVIDIA GB10",
            architecture: 10,
            compute: (12, 1),
            memory_mib: 122_570,
            power_limit_w: 140,
            multiprocessors: 48,
            has_gpm: true,
            has_ecc: false,
            unsupported: &["nvmlDeviceGetMemoryInfo", "nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetRemappedRows"],
            ..DATACENTRE
        },
        "vgpu" => Preset {
            model: "GRID A100D-8C",
            architecture: 7,
            compute: (8, 0),
            memory_mib: 8_192,
            power_limit_w: 400,
            multiprocessors: 108,
            unsupported: &[
                "nvmlDeviceGetTotalEnergyConsumption",
                "nvmlDeviceGetPowerUsage",
                "nvmlDeviceGetTemperature",
                "nvmlDeviceGetTemperatureV",
                "nvmlDeviceGetSamples",
            ],
            ..DATACENTRE
        },
        _ => return None,
    })
}
