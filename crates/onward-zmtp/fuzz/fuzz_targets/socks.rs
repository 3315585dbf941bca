#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| onward_fuzz::targets::socks(data));
