//! Numbers as a reader wants them.

/// A number: whole with thousands separated, or with three digits when small.
pub fn number(value: f64) -> String {
    if value.abs() < 100.0 && value.fract() != 0.0 { format!("{value:.3}") } else { group(value) }
}

/// A mean with its standard deviation, in as many digits as the deviation leaves: two of its own.
pub fn spread(mean: f64, sd: f64) -> String {
    if sd <= 0.0 {
        return format!("{} ± {}", number(mean), number(sd));
    }
    let digits = sd.log10().floor() - 1.0;
    if digits < 0.0 {
        let decimals = (-digits).min(9.0) as usize;
        return format!("{mean:.decimals$} ± {sd:.decimals$}");
    }
    let unit = 10_f64.powf(digits);
    let rounded = |value: f64| group((value / unit).round() * unit);
    format!("{} ± {}", rounded(mean), rounded(sd))
}

/// A ratio with two decimals, or with two significant digits when small.
pub fn ratio(value: f64) -> String {
    if value <= 0.0 || value >= 0.1 {
        return format!("×{value:.2}");
    }
    let decimals = (1.0 - value.log10().floor()) as usize;
    format!("×{value:.decimals$}")
}

/// Milliseconds with three decimals, or with three significant digits when small.
pub fn milliseconds(value: f64) -> String {
    let decimals = if value > 0.0 { (2.0 - value.log10().floor()).clamp(3.0, 9.0) } else { 3.0 };
    format!("{value:.0$}", decimals as usize)
}

/// A whole number with its thousands separated.
pub fn group(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = if value < 0.0 { "-".to_owned() } else { String::new() };
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(group(1_234_567.4), "1,234,567");
        assert_eq!(group(-999.0), "-999");
        assert_eq!(number(0.0421), "0.042");
        assert_eq!(spread(12_299_325.0, 4_092_807.0), "12,300,000 ± 4,100,000");
        assert_eq!(spread(8_416.0, 28.517), "8,416 ± 29");
        assert_eq!(spread(277.3, 7.015), "277.3 ± 7.0");
        assert_eq!(spread(0.0421, 0.004_26), "0.0421 ± 0.0043");
        assert_eq!(spread(0.5, 0.0), "0.500 ± 0");
        assert_eq!((&*ratio(0.0042), &*ratio(2.0)), ("×0.0042", "×2.00"));
        assert_eq!((&*milliseconds(0.000_712), &*milliseconds(12.3)), ("0.000712", "12.300"));
    }
}
