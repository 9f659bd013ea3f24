//! Functions of dates, timestamps and intervals, and the templates of `to_char` and `to_date`.

pub(super) mod fields;
pub(super) mod interval_ops;
pub(super) mod interval_templates;
pub(super) mod number_input;
pub(super) mod number_templates;
pub(super) mod template_input;
pub(super) mod templates;
