use super::super::smi_xml::read;
use super::*;
use cardhour_domain::Milliwatts;

/// A document of one card with two instances, in the words of driver 550.
fn document(minute: u32) -> String {
    format!(
        "<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">\n<nvidia_smi_log>\n\
         <timestamp>Sun Mar  1 00:{minute:02}:00 2026</timestamp><driver_version>550.90.07</driver_version>\n\
         <gpu id=\"00000000:3B:00.0\"><product_name>NVIDIA A100-SXM4-80GB</product_name><uuid>GPU-1</uuid>\
         <mig_mode><current_mig>Enabled</current_mig></mig_mode>\
         <mig_devices><mig_device><gpu_instance_id>1</gpu_instance_id><compute_instance_id>0</compute_instance_id>\
         <fb_memory_usage><used>12 MiB</used></fb_memory_usage></mig_device>\
         <mig_device><gpu_instance_id>2</gpu_instance_id><compute_instance_id>0</compute_instance_id>\
         <fb_memory_usage><used>34 MiB</used></fb_memory_usage></mig_device></mig_devices>\
         <utilization><gpu_util>N/A</gpu_util></utilization><module_power_readings><power_draw>999.00 W</power_draw>\
         </module_power_readings><gpu_power_readings><average_power_draw>201.50 W</average_power_draw>\
         <instant_power_draw>300.00 W</instant_power_draw></gpu_power_readings>\
         <pci><pci_bus_id>00000000:3B:00.0</pci_bus_id></pci><processes></processes></gpu>\n</nvidia_smi_log>\n"
    )
}

#[test]
fn instances_have_rows_of_their_own_and_the_card_has_the_power() {
    let text = document(0) + &document(1) + &document(2);
    let told = of(read(text.as_bytes(), &setting()).unwrap());
    assert_eq!(told.rejected, []);
    assert_eq!(told.samples.len(), 9);
    let of_device = |id: &str| told.samples.iter().find(|sample| sample.device_uuid == id).unwrap();
    let card = of_device("GPU-1");
    assert_eq!((card.power_mw, card.sm_active_pct), (Reading::Seen(Milliwatts(201_500)), missing(Gap::NotSupported)));
    assert_eq!(card.during.length_ms(), 60_000);
    let slice = of_device("MIG-GPU-1/2/0");
    assert_eq!((slice.mem_used_bytes, &*slice.card_uuid), (Reading::Seen(34 * 1_048_576), "GPU-1"));
    assert_eq!((slice.power_mw, slice.energy_mj), (missing(Gap::NotSupported), missing(Gap::NotSupported)));
    assert_eq!(told.devices[0].pci_bus_id.as_deref(), Some("00000000:3b:00.0"));
}

#[test]
fn a_document_that_breaks_off_or_is_no_xml_is_rejected_and_the_others_are_read() {
    let whole = document(0);
    let torn = document(1).replace("</nvidia_smi_log>\n", "");
    let wrong = document(2).replace("<uuid>GPU-1</uuid>", "<uuid>GPU-1</uid>");
    let told = of(read(format!("{torn}{whole}{wrong}").as_bytes(), &setting()).unwrap());
    let lines: Vec<_> = told.rejected.iter().map(|row| row.line).collect();
    // Six lines a document, five of the torn one, and two of each stand before its root: 2 + 1, and 5 + 6 + 2 + 1.
    assert_eq!(lines, [3, 14]);
    assert_eq!(told.samples.len(), 3);
    assert!(read(b"<html></html>", &setting()).is_err());
}
