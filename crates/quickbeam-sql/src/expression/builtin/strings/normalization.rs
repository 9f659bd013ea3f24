//! Unicode's normalization forms: `normalize` and `is_normalized`.

use unicode_normalization::{UnicodeNormalization, is_nfc, is_nfd, is_nfkc, is_nfkd};

use crate::error::Result;
use crate::expression::builtin::{Builtin, invalid, strict, text};
use crate::types::DataType::{Boolean, Text};
use crate::types::Value;

pub(in crate::expression::builtin) static TABLE: &[Builtin] = &[
    strict("normalize", &[Text], Text, |v| normalized(text(v, 0)?, "NFC")),
    strict("normalize", &[Text, Text], Text, |v| normalized(text(v, 0)?, text(v, 1)?)),
    strict("is_normalized", &[Text], Boolean, |v| is_normalized(text(v, 0)?, "NFC")),
    strict("is_normalized", &[Text, Text], Boolean, |v| is_normalized(text(v, 0)?, text(v, 1)?)),
];

fn normalized(value: &str, form: &str) -> Result<Value> {
    let made: String = match &form.to_ascii_uppercase()[..] {
        "NFC" => value.nfc().collect(),
        "NFD" => value.nfd().collect(),
        "NFKC" => value.nfkc().collect(),
        "NFKD" => value.nfkd().collect(),
        _ => return Err(invalid(format!("invalid normalization form: {form}"))),
    };
    Ok(Value::text(made))
}

fn is_normalized(value: &str, form: &str) -> Result<Value> {
    let is = match &form.to_ascii_uppercase()[..] {
        "NFC" => is_nfc(value),
        "NFD" => is_nfd(value),
        "NFKC" => is_nfkc(value),
        "NFKD" => is_nfkd(value),
        _ => return Err(invalid(format!("invalid normalization form: {form}"))),
    };
    Ok(Value::Boolean(is))
}
