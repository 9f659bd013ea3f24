//! Sets of characters, as sorted ranges of code points.

/// A set of characters: ranges with both ends included, sorted, with gaps between them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::expression) struct CharacterSet {
    ranges: Vec<(u32, u32)>,
}

const LAST: u32 = char::MAX as u32;

impl CharacterSet {
    pub fn all() -> CharacterSet {
        CharacterSet { ranges: vec![(0, LAST)] }
    }

    pub fn of(character: char) -> CharacterSet {
        CharacterSet { ranges: vec![(u32::from(character), u32::from(character))] }
    }

    /// Makes a set of ranges in any order.
    pub fn of_ranges(ranges: impl IntoIterator<Item = (u32, u32)>) -> CharacterSet {
        let mut set = CharacterSet { ranges: ranges.into_iter().collect() };
        set.normalize();
        set
    }

    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.ranges
    }

    pub fn add(&mut self, character: char) {
        self.ranges.push((u32::from(character), u32::from(character)));
        self.normalize();
    }

    pub fn add_all(&mut self, other: &CharacterSet) {
        self.ranges.extend_from_slice(&other.ranges);
        self.normalize();
    }

    pub fn complement(&self) -> CharacterSet {
        let (mut ranges, mut next) = (Vec::with_capacity(self.ranges.len() + 1), 0);
        for &(first, last) in &self.ranges {
            if first > next {
                ranges.push((next, first - 1));
            }
            next = last + 1;
        }
        if next <= LAST {
            ranges.push((next, LAST));
        }
        CharacterSet { ranges }
    }

    /// Returns the characters of this set that are not in the other one.
    pub fn without(&self, other: &CharacterSet) -> CharacterSet {
        let mut absent = self.complement();
        absent.add_all(other);
        absent.complement()
    }

    #[cfg(test)]
    pub fn contains(&self, character: char) -> bool {
        let code = u32::from(character);
        let at = self.ranges.partition_point(|(_, last)| *last < code);
        self.ranges.get(at).is_some_and(|(first, _)| *first <= code)
    }

    /// Returns the characters; code points of surrogates are not characters.
    pub fn characters(&self) -> impl Iterator<Item = char> {
        self.ranges.iter().flat_map(|&(first, last)| (first..=last).filter_map(char::from_u32))
    }

    fn normalize(&mut self) {
        self.ranges.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::with_capacity(self.ranges.len());
        for &(first, last) in &self.ranges {
            match merged.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => {
                    before.1 = before.1.max(last);
                }
                _ => merged.push((first, last)),
            }
        }
        self.ranges = merged;
    }
}
