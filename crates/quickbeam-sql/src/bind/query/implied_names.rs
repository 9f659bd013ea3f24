//! Implied names of outputs.

use smol_str::SmolStr;
use sqlparser::ast::{
    ArrayElemTypeDef, BinaryOperator, DataType as WrittenType, Expr as Ast, SelectItem, SetExpr,
    TableFactor, TrimWhereField,
};

use crate::bind::records::whole_rows::field_name;
use crate::bind::{fold, object_name, types};
use crate::parse::ALL_FIELDS;

/// The name of an output, as PostgreSQL finds one.
pub fn implied_name(expr: &Ast) -> SmolStr {
    name_in(expr).map_or_else(|| "?column?".into(), |(name, _)| name)
}

/// Returns the name of a type, which may be one of a user.
fn type_name(written: &WrittenType) -> Option<SmolStr> {
    match (types::data_type(written), written) {
        (Ok(known), WrittenType::Custom(name, _))
            if object_name(name).is_ok_and(|it| it == "nchar") =>
        {
            Some(known.catalog_name().into())
        }
        (_, WrittenType::Custom(name, _)) => object_name(name).ok(),
        (Ok(known), _) => Some(known.catalog_name().into()),
        (Err(_), WrittenType::Array(ArrayElemTypeDef::SquareBracket(element, _))) => {
            type_name(element)
        }
        (Err(_), _) => None,
    }
}

/// Returns the implied name of an expression, and whether it takes precedence over the name of a
/// type.
fn name_in(expr: &Ast) -> Option<(SmolStr, bool)> {
    let good = |name: &str| Some((SmolStr::new(name), true));
    match expr {
        Ast::Identifier(ident) => Some((fold(ident), true)),
        Ast::CompoundIdentifier(idents) => {
            let mut names = idents.iter().rev().map(fold);
            names.find(|name| name != ALL_FIELDS).map(|name| (name, true))
        }
        Ast::QualifiedWildcard(name, _) => object_name(name).ok().map(|name| (name, true)),
        Ast::Function(call) => object_name(&call.name).ok().map(|name| (name, true)),
        Ast::Nested(inner) => name_in(inner),
        Ast::Cast { expr, data_type, .. } => {
            let inner = name_in(expr);
            match inner {
                Some((_, true)) => inner,
                _ => type_name(data_type).map(|name| (name, false)),
            }
        }
        Ast::TypedString(typed) => type_name(&typed.data_type).map(|name| (name, false)),
        Ast::Case { else_result, .. } => {
            let otherwise = else_result.as_deref().and_then(name_in);
            otherwise.filter(|(_, is_good)| *is_good).or(Some(("case".into(), false)))
        }
        Ast::Subquery(query) => name_of_query(&query.body).map(|name| (name, true)),
        Ast::Exists { negated, .. } => good("exists").filter(|_| !negated),
        Ast::IsNormalized { negated: false, .. } => good("is_normalized"),
        Ast::Extract { .. } => good("extract"),
        Ast::Overlay { .. } => good("overlay"),
        Ast::AtTimeZone { .. } => good("timezone"),
        Ast::BinaryOp { op: BinaryOperator::Overlaps, .. } => good("overlaps"),
        Ast::Interval(_) => Some(("interval".into(), false)),
        Ast::Collate { expr, .. } => name_in(expr),
        Ast::Substring { shorthand, .. } => good(if *shorthand { "substr" } else { "substring" }),
        Ast::Position { .. } => good("position"),
        Ast::Trim { trim_where, .. } => good(match trim_where {
            Some(TrimWhereField::Leading) => "ltrim",
            Some(TrimWhereField::Trailing) => "rtrim",
            Some(TrimWhereField::Both) | None => "btrim",
        }),
        Ast::Ceil { .. } => good("ceil"),
        Ast::Array(_) => good("array"),
        Ast::CompoundFieldAccess { root, access_chain } => {
            let mut fields = access_chain.iter().rev().filter_map(field_name);
            fields.next().map(|name| (name, true)).or_else(|| name_in(root))
        }
        Ast::Tuple(_) => good("row"),
        Ast::Floor { .. } => good("floor"),
        _ => None,
    }
}

/// Returns the name of the only column of a query.
fn name_of_query(body: &SetExpr) -> Option<SmolStr> {
    match body {
        SetExpr::Select(select) => match (&select.projection[..], &select.from[..]) {
            ([SelectItem::UnnamedExpr(expr)], _) => Some(implied_name(expr)),
            ([SelectItem::ExprWithAlias { alias, .. }], _) => Some(fold(alias)),
            ([SelectItem::Wildcard(_)], [item]) => match &item.relation {
                TableFactor::Derived { subquery, .. } => name_of_query(&subquery.body),
                _ => None,
            },
            _ => None,
        },
        SetExpr::Values(_) => Some("column1".into()),
        SetExpr::Query(query) => name_of_query(&query.body),
        SetExpr::SetOperation { left, .. } => name_of_query(left),
        _ => None,
    }
}
