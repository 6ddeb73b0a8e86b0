use proptest::prelude::*;

use super::*;

fn quantity(text: &str) -> Quantity {
    text.parse().unwrap()
}

fn sum(texts: &[&str]) -> String {
    let mut total = Quantity::ZERO;
    for text in texts {
        total += quantity(text);
    }
    total.to_string()
}

#[test]
fn quantities_print_in_their_shortest_exact_form() {
    for (text, printed) in [
        ("0", "0"),
        ("0Ki", "0"),
        ("4", "4"),
        ("+4", "4"),
        ("-4", "-4"),
        ("04", "4"),
        ("4.", "4"),
        (".5", "500m"),
        ("0.5", "500m"),
        ("100m", "100m"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("1000", "1k"),
        ("1024", "1024"),
        ("1500k", "1500k"),
        ("12000000u", "12"),
        ("1024Mi", "1Gi"),
        ("1025Mi", "1025Mi"),
        ("1.5Gi", "1536Mi"),
        ("1Ki", "1Ki"),
        ("0.5Ki", "512"),
        ("0.1Ki", "102400m"),
        ("0.1Mi", "104857600m"),
        ("16384256Ki", "16384256Ki"),
        ("8052184Ki", "8052184Ki"),
        ("1e3", "1e3"),
        ("1E3", "1e3"),
        ("12e6", "12e6"),
        ("1e-3", "1e-3"),
        ("100e1", "1e3"),
        ("1E", "1E"),
        ("1Ei", "1Ei"),
        ("1n", "1n"),
        ("0.1n", "1n"),
        ("1.00000000001", "1000000001n"),
    ] {
        assert_eq!(quantity(text).to_string(), printed, "{text}");
    }
}

#[test]
fn an_amount_too_large_is_cut() {
    for text in ["8Ei", "9007199254740992Ki", "99999999999999999999999999999999999999999999Mi"] {
        assert_eq!(quantity(text).nanos(), MAX_BINARY, "{text}");
    }
    for text in ["99999999999999999999999999999999999999999999", "1e999"] {
        assert_eq!(quantity(text).nanos(), i128::MAX, "{text}");
    }
    assert_eq!(quantity("9223372036854775808").to_string(), "9223372036854775808");
    assert_eq!(sum(&["6E", "6E"]), "12E");
}

#[test]
fn what_is_not_a_quantity_is_an_error_that_shows_it() {
    for text in ["", "m", "1.2.3", "1 Gi", "1gi", "1kb", "1e", "e3", "0x10", "--1", "1e+-3", ".", "1i", "NaN", "1e3m"] {
        let error = text.parse::<Quantity>().unwrap_err();
        assert!(error.to_string().contains(&format!("{text:?}")), "{error}");
    }
}

#[test]
fn a_sum_keeps_the_format_of_its_first_operand() {
    assert_eq!(sum(&["8052184Ki", "8052184Ki"]), "16104368Ki");
    assert_eq!(sum(&["1Gi", "1000"]), "1073742824");
    assert_eq!(sum(&["1000", "1Gi"]), "1073742824");
    assert_eq!(sum(&["1G", "1Gi"]), "2073741824");
    assert_eq!(sum(&["1Gi", "1G"]), "2073741824");
    assert_eq!(sum(&["1Gi", "1024k"]), "1049576Ki");
    assert_eq!(sum(&["1024k", "1Gi"]), "1074765824");
    assert_eq!(sum(&["1Gi", "1Mi"]), "1025Mi");
    assert_eq!(sum(&["4", "3920m"]), "7920m");
    assert_eq!(sum(&["0", "1Gi"]), "1Gi");
    assert_eq!(sum(&[]), "0");
}

proptest! {
    #[test]
    fn printing_and_parsing_again_keeps_the_amount(nanos in -MAX_BINARY..MAX_BINARY, format in 0..3) {
        let format = [Format::DecimalSi, Format::BinarySi, Format::DecimalExponent][usize::try_from(format).unwrap()];
        let printed = Quantity { nanos, format }.to_string();
        prop_assert_eq!(quantity(&printed).nanos(), nanos, "{}", printed);
    }

    #[test]
    fn the_sum_of_amounts_is_the_amount_of_the_sum(amounts in prop::collection::vec((0u32..1_000_000, 0usize..6), 0..20)) {
        let suffixes = [("m", 1_000_000), ("", NANOS_PER_UNIT), ("k", 1000 * NANOS_PER_UNIT),
            ("Ki", 1024 * NANOS_PER_UNIT), ("Mi", 1_048_576 * NANOS_PER_UNIT), ("e6", 1_000_000 * NANOS_PER_UNIT)];
        let mut total = Quantity::ZERO;
        let mut expected = 0;
        for (number, suffix) in amounts {
            total += quantity(&format!("{number}{}", suffixes[suffix].0));
            expected += i128::from(number) * suffixes[suffix].1;
        }
        prop_assert_eq!(total.nanos(), expected);
        prop_assert_eq!(quantity(&total.to_string()).nanos(), expected);
    }

    #[test]
    fn the_order_of_operands_does_not_change_the_amount(a in "[0-9]{1,6}(\\.[0-9]{1,4})?(m|k|M|Ki|Mi|)", b in "[0-9]{1,6}(n|u|m|G|Gi|e3|)") {
        let (mut ab, mut ba) = (quantity(&a), quantity(&b));
        ab += quantity(&b);
        ba += quantity(&a);
        prop_assert_eq!(ab.nanos(), ba.nanos());
    }
}
