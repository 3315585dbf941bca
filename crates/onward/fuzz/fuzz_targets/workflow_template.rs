#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| onward_workflow_fuzz::workflow_template(data));
