//! The groups of the rows of a batch, and sums of few groups.
//!
//! Above: the states of aggregates. Where a batch has few groups, their rows are counted once for
//! all aggregates, and numbers are added in 64 bits, each second row in sums of its own. So an
//! addition seldom waits for the one before it.

/// The most groups that are few.
const FEW_GROUPS: usize = 64;
/// Bits of the absolute value of a sum of a batch in 64 bits.
const SUM_BITS: u32 = 62;

/// The groups of the rows of a batch.
#[derive(Clone, Copy, Debug)]
pub struct RowGroups<'b> {
    /// For each row its group.
    pub places: &'b [u32],
    /// The rows of each group, if there are few groups.
    pub rows: Option<&'b [i64]>,
}

/// Counts the rows of each of `groups` groups in `rows`. Leaves `rows` empty if there are not few
/// groups, or only one, which needs no counting.
pub fn count_rows(places: &[u32], groups: usize, rows: &mut Vec<i64>) {
    rows.clear();
    if !(2..=FEW_GROUPS).contains(&groups) {
        return;
    }
    let mut counts = [[0_i64; FEW_GROUPS]; 2];
    for pair in places.chunks(2) {
        for (place, counts) in pair.iter().zip(&mut counts) {
            counts[*place as usize % FEW_GROUPS] += 1;
        }
    }
    rows.extend((0..groups).map(|group| counts[0][group] + counts[1][group]));
}

/// Adds numbers to the sums of their groups. Returns false, and adds nothing, if there are not few
/// groups or a sum might need more than 64 bits.
pub fn add_numbers(numbers: &[i64], places: &[u32], sums: &mut [i128]) -> bool {
    let magnitude = numbers.iter().fold(0, |all, n| all | (n ^ (n >> 63)));
    let bits = u64::BITS - magnitude.leading_zeros() + usize::BITS - numbers.len().leading_zeros();
    if bits >= SUM_BITS || sums.len() > FEW_GROUPS {
        return false;
    }
    let mut parts = [[0_i64; FEW_GROUPS]; 2];
    for (numbers, places) in numbers.chunks(2).zip(places.chunks(2)) {
        for ((number, place), part) in numbers.iter().zip(places).zip(&mut parts) {
            part[*place as usize % FEW_GROUPS] += number;
        }
    }
    for (group, sum) in sums.iter_mut().enumerate() {
        *sum += i128::from(parts[0][group] + parts[1][group]);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sums_of_few_groups_are_those_of_each_row(
            rows in prop::collection::vec((any::<i64>(), 0..65_u32), 0..300),
            shift in 0..64_u32, groups in 1..66_usize,
        ) {
            let places: Vec<u32> = rows.iter().map(|(_, place)| place % groups as u32).collect();
            let numbers: Vec<i64> = rows.iter().map(|(number, _)| number >> shift).collect();
            let (mut sums, mut expected) = (vec![7_i128; groups], vec![7_i128; groups]);
            let mut counts = vec![0; groups];
            for (number, place) in numbers.iter().zip(&places) {
                expected[*place as usize] += i128::from(*number);
                counts[*place as usize] += 1;
            }
            if add_numbers(&numbers, &places, &mut sums) {
                prop_assert!(groups <= FEW_GROUPS);
                prop_assert_eq!(sums, expected);
            } else {
                prop_assert!(groups > FEW_GROUPS || shift < 20);
                prop_assert!(sums.iter().all(|sum| *sum == 7));
            }
            let mut counted = vec![1];
            count_rows(&places, groups, &mut counted);
            let is_counted = (2..=FEW_GROUPS).contains(&groups);
            prop_assert_eq!(counted, if is_counted { counts } else { Vec::new() });
        }
    }
}
