//! Devices of dynamic resource allocation: from driver, pool and name to a UUID.

use cardhour_domain::Name;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};

/// The driver whose devices are NVIDIA's cards.
pub const GPU_DRIVER: &str = "gpu.nvidia.com";

/// A device as a driver publishes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedDevice {
    /// Its UUID.
    pub uuid: Name,
    /// Its card's UUID, for a MIG instance.
    pub parent_uuid: Option<Name>,
}

/// Devices that drivers publish of this node, by pool and name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublishedDevices {
    devices: BTreeMap<(Name, Name), PublishedDevice>,
}

impl PublishedDevices {
    /// Of the slices that an API server lists, of [`GPU_DRIVER`]'s pools. A pool's slices of an older generation are left over from before it
    /// was published anew, and say nothing. Devices without a UUID are left out.
    pub fn of(slices: &[SliceJson]) -> Self {
        let ours = || slices.iter().map(|slice| &slice.spec).filter(|spec| spec.driver == GPU_DRIVER);
        let mut newest: HashMap<&str, i64> = HashMap::new();
        for spec in ours() {
            let generation = newest.entry(&spec.pool.name).or_default();
            *generation = (*generation).max(spec.pool.generation);
        }
        let mut devices = BTreeMap::new();
        for spec in ours().filter(|spec| newest.get(&*spec.pool.name) == Some(&spec.pool.generation)) {
            for device in &spec.devices {
                if let Some(uuid) = device.text("uuid") {
                    let key = (Name::from(spec.pool.name.as_str()), Name::from(device.name.as_str()));
                    devices.insert(key, PublishedDevice { uuid, parent_uuid: device.text("parentUUID") });
                }
            }
        }
        Self { devices }
    }

    /// The device of that name in a pool.
    pub fn get(&self, pool: &Name, device: &Name) -> Option<&PublishedDevice> {
        self.devices.get(&(pool.clone(), device.clone()))
    }
}

/// A ResourceSlice as the API server writes it; of what it writes, what is read here.
#[derive(Debug, Deserialize)]
pub struct SliceJson {
    spec: SpecJson,
}

#[derive(Debug, Deserialize)]
struct SpecJson {
    driver: String,
    pool: PoolJson,
    #[serde(default)]
    devices: Vec<DeviceJson>,
}

#[derive(Debug, Deserialize)]
struct PoolJson {
    name: String,
    #[serde(default)]
    generation: i64,
}

/// A device: in version v1 and v1beta2 its attributes are its own, in v1beta1 those of its `basic`.
#[derive(Debug, Deserialize)]
struct DeviceJson {
    name: String,
    #[serde(default)]
    attributes: BTreeMap<String, AttributeJson>,
    basic: Option<BasicJson>,
}

#[derive(Debug, Deserialize)]
struct BasicJson {
    #[serde(default)]
    attributes: BTreeMap<String, AttributeJson>,
}

#[derive(Debug, Deserialize)]
struct AttributeJson {
    string: Option<String>,
}

impl DeviceJson {
    fn text(&self, attribute: &str) -> Option<Name> {
        let basic = || self.basic.as_ref().and_then(|basic| basic.attributes.get(attribute));
        let found = self.attributes.get(attribute).or_else(basic);
        found.and_then(|value| value.string.as_deref()).map(Name::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn slice(driver: &str, generation: i64, devices: Value) -> SliceJson {
        let spec = json!({"driver": driver, "nodeName": "n1", "pool": {"name": "n1", "generation": generation, "resourceSliceCount": 1}, "devices": devices});
        serde_json::from_value(json!({"metadata": {"name": "s"}, "spec": spec})).unwrap()
    }

    fn uuid(devices: &PublishedDevices, name: &str) -> Option<String> {
        devices.get(&"n1".into(), &name.into()).map(|device| device.uuid.to_string())
    }

    #[test]
    fn both_shapes_lead_to_the_uuid_and_an_instance_to_its_card() {
        let v1 = json!([{"name": "gpu-0", "attributes": {"type": {"string": "gpu"}, "uuid": {"string": "GPU-a"}, "index": {"int": 0}}}]);
        let v1beta1 = json!([{"name": "gpu-0-mig-9-4-4", "basic": {"attributes": {
            "type": {"string": "mig"}, "uuid": {"string": "MIG-x"}, "parentUUID": {"string": "GPU-a"}, "profile": {"string": "1g.5gb"}}}}]);
        let devices = PublishedDevices::of(&[slice(GPU_DRIVER, 1, v1), slice(GPU_DRIVER, 1, v1beta1)]);
        assert_eq!(uuid(&devices, "gpu-0").as_deref(), Some("GPU-a"));
        let instance = devices.get(&"n1".into(), &"gpu-0-mig-9-4-4".into()).unwrap();
        assert_eq!((&*instance.uuid, instance.parent_uuid.as_deref()), ("MIG-x", Some("GPU-a")));
    }

    #[test]
    fn slices_of_an_older_generation_and_of_other_drivers_say_nothing() {
        let device = |uuid: &str| json!([{"name": "gpu-0", "attributes": {"uuid": {"string": uuid}}}]);
        let slices = [
            slice(GPU_DRIVER, 2, device("GPU-new")),
            slice(GPU_DRIVER, 1, device("GPU-old")),
            slice("other.example.com", 9, device("GPU-other")),
        ];
        assert_eq!(uuid(&PublishedDevices::of(&slices), "gpu-0").as_deref(), Some("GPU-new"));
    }
}
