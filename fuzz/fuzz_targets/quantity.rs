//! Quantities, as nodes report them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ocm_apimachinery::quantity::Quantity;

fuzz_target!(|texts: (String, String)| {
    let (Ok(mut sum), Ok(second)) = (texts.0.parse::<Quantity>(), texts.1.parse::<Quantity>()) else { return };
    let read_back: Quantity = sum.to_string().parse().expect("what is written can be read");
    assert_eq!(read_back.nanos(), sum.nanos());
    sum += second;
    let _ = sum.to_string();
});
