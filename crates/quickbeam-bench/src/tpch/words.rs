//! The word lists of the TPC-H specification (revision 3, clause 4.2.2.13), and texts made of them.

use crate::workload::random::Random;

/// Words of a part's name.
const COLORS: &str = "almond antique aquamarine azure beige bisque black blanched blue blush brown \
    burlywood burnished chartreuse chiffon chocolate coral cornflower cornsilk cream cyan dark deep \
    dim dodger drab firebrick floral forest frosted gainsboro ghost goldenrod green grey honeydew \
    hot indian ivory khaki lace lavender lawn lemon light lime linen magenta maroon medium metallic \
    midnight mint misty moccasin navajo navy olive orange orchid pale papaya peach peru pink plum \
    powder puff purple red rose rosy royal saddle salmon sandy seashell sienna sky slate smoke snow \
    spring steel tan thistle tomato turquoise violet wheat white yellow";
/// Words of comments: nouns, verbs, adjectives and adverbs.
const WORDS: &str = "foxes ideas theodolites pinto beans instructions dependencies excuses \
    platelets asymptotes courts dolphins multipliers sauternes warthogs frets dinos attainments \
    somas packages accounts requests deposits patterns realms braids hockey players frays warhorses \
    dugouts notornis epitaphs pearls tithes waters orbits gifts sheaves depths sentiments decoys \
    pains sleep wake are cajole haggle nag use boost affix detect integrate maintain nod was lose \
    sublate solve thrash promise engage hinder print doze run dazzle snooze unwind kindle play hang \
    believe doubt special pending unusual express furious sly careful blithe quick fluffy slow quiet \
    ruthless thin close dogged daring brave stealthy permanent enticing idle busy regular final \
    ironic even bold silent sometimes always never furiously slyly carefully blithely quickly \
    fluffily slowly quietly ruthlessly thinly closely doggedly daringly bravely about above \
    according to across after against along";

/// The regions.
pub const REGIONS: [&str; 5] = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"];
/// The nations, with the number of their region.
pub const NATIONS: [(&str, i32); 25] = [
    ("ALGERIA", 0),
    ("ARGENTINA", 1),
    ("BRAZIL", 1),
    ("CANADA", 1),
    ("EGYPT", 4),
    ("ETHIOPIA", 0),
    ("FRANCE", 3),
    ("GERMANY", 3),
    ("INDIA", 2),
    ("INDONESIA", 2),
    ("IRAN", 4),
    ("IRAQ", 4),
    ("JAPAN", 2),
    ("JORDAN", 4),
    ("KENYA", 0),
    ("MOROCCO", 0),
    ("MOZAMBIQUE", 0),
    ("PERU", 1),
    ("CHINA", 2),
    ("ROMANIA", 3),
    ("SAUDI ARABIA", 4),
    ("VIETNAM", 2),
    ("RUSSIA", 3),
    ("UNITED KINGDOM", 3),
    ("UNITED STATES", 1),
];
const TYPES: [&[&str]; 3] = [
    &["STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"],
    &["ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"],
    &["TIN", "NICKEL", "BRASS", "STEEL", "COPPER"],
];
const CONTAINERS: [&[&str]; 2] = [
    &["SM", "MED", "JUMBO", "WRAP", "LG"],
    &["CASE", "BOX", "JAR", "PKG", "PACK", "CAN", "DRUM", "BAG"],
];
const SEGMENTS: &[&str] = &["AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"];
const PRIORITIES: &[&str] = &["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"];
const INSTRUCTIONS: &[&str] = &["COLLECT COD", "DELIVER IN PERSON", "NONE", "TAKE BACK RETURN"];
const MODES: &[&str] = &["AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK"];

/// Draws texts.
pub struct Words {
    colors: Vec<&'static str>,
    words: Vec<&'static str>,
}

impl Default for Words {
    fn default() -> Words {
        Words {
            colors: COLORS.split_whitespace().collect(),
            words: WORDS.split_whitespace().collect(),
        }
    }
}

/// One of a list.
fn pick<'t>(list: &[&'t str], random: &mut Random) -> &'t str {
    list[random.below(list.len() as u64) as usize]
}

fn joined(lists: &[&[&str]], random: &mut Random) -> String {
    let picked: Vec<&str> = lists.iter().map(|list| pick(list, random)).collect();
    picked.join(" ")
}

impl Words {
    /// The name of a part: five different colors.
    pub fn part_name(&self, random: &mut Random) -> String {
        let mut name: Vec<&str> = Vec::new();
        while name.len() < 5 {
            let color = pick(&self.colors, random);
            if !name.contains(&color) {
                name.push(color);
            }
        }
        name.join(" ")
    }

    /// A text of `from` to `to` characters.
    pub fn comment(&self, random: &mut Random, from: u64, to: u64) -> String {
        let length = (from + random.below(to - from + 1)) as usize;
        let mut text = String::with_capacity(length + 16);
        while text.len() < length {
            text.push_str(pick(&self.words, random));
            text.push(' ');
        }
        text.truncate(length);
        text.trim_end().to_owned()
    }
}

/// An address: 10 to 40 random letters and digits.
pub fn address(random: &mut Random) -> String {
    const LETTERS: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ,";
    let length = 10 + random.below(31);
    let letter = |_| char::from(LETTERS[random.below(LETTERS.len() as u64) as usize]);
    (0..length).map(letter).collect()
}

/// The type of a part.
pub fn part_type(random: &mut Random) -> String {
    joined(&TYPES, random)
}

/// The container of a part.
pub fn container(random: &mut Random) -> String {
    joined(&CONTAINERS, random)
}

/// The market segment of a customer.
pub fn segment(random: &mut Random) -> &'static str {
    pick(SEGMENTS, random)
}

/// The priority of an order.
pub fn priority(random: &mut Random) -> &'static str {
    pick(PRIORITIES, random)
}

/// The instructions for a shipment.
pub fn instruction(random: &mut Random) -> &'static str {
    pick(INSTRUCTIONS, random)
}

/// The mode of a shipment.
pub fn ship_mode(random: &mut Random) -> &'static str {
    pick(MODES, random)
}
