//! Definitions of tables, views and sequences as values, and the bytes of their rows and keys.

mod definition;
pub(crate) mod encoding;
pub(crate) mod errors;
pub(crate) mod fired_triggers;
pub(crate) mod indexes;
pub(crate) mod names;
pub(crate) mod objects;
pub(crate) mod role_defaults;
pub(crate) mod roles;
pub(crate) mod routines;
pub(crate) mod tables;
pub(crate) mod triggers;
pub(crate) mod user_types;
pub(crate) mod views;

pub use definition::{
    Added, IndexConstraint, NewCheck, NewColumn, NewForeignKey, NewGenerated, NewIdentity,
    NewIndex, NewIndexExpression, NewIndexPredicate, NewKey, NewTable, OnCommit, SequenceChanges,
    SequenceOptions,
};
pub(crate) use encoding::{KeyPart, ROW_ID_BYTES, append_row_id};
pub use fired_triggers::FiredTriggers;
pub use indexes::{
    EXPRESSIONS, IndexExpression, IndexPredicate, InvertedOperator, OperatorClass, OperatorClasses,
};
pub use names::{
    PUBLIC, SYSTEM_COLUMNS, TEMPORARY_SCHEMA, is_system_schema, is_temporary_schema, lookup_name,
    path_schemas, shown_name, split_lookup_name,
};
pub use objects::{Comments, ConstraintTiming, ObjectId};
pub use role_defaults::{
    ALL_ROLES, DefaultAcl, DefaultRights, RoleSettings, SettingList, SettingPlace, change_setting,
};
pub use roles::{
    AclItem, AclKind, BOOTSTRAP, BOOTSTRAP_NAME, DATABASE_ID, Membership, ObjectAccess,
    PUBLIC_SCHEMA_ID, Privileges, Role,
};
pub use routines::{
    AggregateDefinition, Argument, ArgumentMode, BuiltinTrigger, ConcreteTypes, FunctionName,
    Language, PseudoType, Routine, RoutineResult, TypeKey, Volatility,
};
pub use tables::{
    Check, Column, DropBehavior, ForeignKey, ForeignKeyAction, Identity, Index, KeyColumn, Method,
    PrimaryKey, Reference, Relation, Schema, Sequence, Table,
};
pub use triggers::{
    TransitionSide, Trigger, TriggerEvent, TriggerLevel, TriggerState, TriggerTiming,
};
pub use user_types::{
    Attribute, CompositeType, DeclaredType, Domain, DomainCheck, DomainUse, EnumLabel, EnumType,
    MadeCollation, NamedDomain, StoredCollation,
};
pub use views::{
    CheckOption, Materialized, NewMaterialized, NewView, View, ViewChange, ViewOptions,
};
