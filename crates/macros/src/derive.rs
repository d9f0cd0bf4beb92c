//! From the tokens of a type to its `impl Job`, or to everything that is wrong with it.

use proc_macro2::{Literal, TokenStream};
use quote::quote;
use syn::{
    Attribute, Data, DeriveInput, Error, Fields, GenericParam, Ident, LitStr, Result, ext::IdentExt, parse_quote,
};

use crate::{
    attributes::Attributes,
    name::{self, Alphabet},
    problems::Problems,
};

/// Expands the derive.
pub(crate) fn expand(input: TokenStream) -> Result<TokenStream> {
    let input: DeriveInput = syn::parse2(input)?;
    let mut problems = Problems::default();
    check_shape(&input, &mut problems);
    let given = Attributes::read(&input.attrs, &mut problems);
    let job_type = given.job_type.clone().unwrap_or_else(|| own_name(&input.ident, &mut problems));
    problems.finish()?;
    Ok(implementation(&input, &given, &job_type))
}

fn check_shape(input: &DeriveInput, problems: &mut Problems) {
    for parameter in &input.generics.params {
        let name = match parameter {
            GenericParam::Type(parameter) => parameter.ident.to_string(),
            GenericParam::Lifetime(parameter) => parameter.lifetime.to_string(),
            GenericParam::Const(_) => continue,
        };
        let message =
            format!("a job cannot be generic over `{name}`: one job type is one kind of payload, which owns its data");
        problems.add(Error::new_spanned(parameter, message));
    }
    match &input.data {
        Data::Struct(data) => check_fields(&data.fields, problems),
        Data::Enum(data) => {
            for variant in &data.variants {
                check_place(&variant.attrs, "variant", problems);
                check_fields(&variant.fields, problems);
            }
        }
        Data::Union(data) => problems.add(Error::new(
            data.union_token.span,
            "a union cannot be a job: nothing says which of its fields is the payload; use a struct or an enum",
        )),
    }
}

fn check_fields(fields: &Fields, problems: &mut Problems) {
    for field in fields {
        check_place(&field.attrs, "field", problems);
    }
}

// The compiler lets the attribute stand anywhere inside the type, where it would be passed over in silence.
fn check_place(attributes: &[Attribute], place: &str, problems: &mut Problems) {
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("job")) {
        problems.add(Error::new_spanned(attribute, format!("`#[job(...)]` belongs on the type, not on a {place}")));
    }
}

fn own_name(ident: &Ident, problems: &mut Problems) -> LitStr {
    let name = ident.unraw().to_string();
    if let Err(problem) = name::check(&name, Alphabet::WithColon) {
        let message =
            format!("this name cannot be the job type, which {problem}; give another with `#[job(type = \"...\")]`");
        problems.add(Error::new(ident.span(), message));
    }
    LitStr::new(&name, ident.span())
}

fn implementation(input: &DeriveInput, given: &Attributes, job_type: &LitStr) -> TokenStream {
    let krate = given.krate.clone().unwrap_or_else(|| parse_quote!(::orchestrix));
    let output = given.output.clone().unwrap_or_else(|| parse_quote!(()));
    let ident = &input.ident;
    let (parameters, arguments, bounds) = input.generics.split_for_impl();

    let queue = given.queue.as_ref().map(|queue| quote!(queue: #queue,));
    let priority = given.priority.map(Literal::i16_unsuffixed).map(|priority| quote!(priority: #priority,));
    let max_attempts = given.max_attempts.map(Literal::u16_unsuffixed).map(|attempts| quote!(max_attempts: #attempts,));
    let timeout = given.timeout.as_ref().map(|timeout| quote!(timeout: ::core::option::Option::Some(#timeout),));
    let lease = given.lease.as_ref().map(|lease| quote!(lease: #lease,));
    let retry = given.retry.as_ref().map(|retry| retry.expression(&krate)).map(|retry| quote!(retry: #retry,));
    let tags = given.tags.as_ref().map(|tags| quote!(tags: &[#(#tags),*],));

    // Whoever gives everything leaves nothing to the rest, which clippy would hold against the caller.
    quote! {
        #[automatically_derived]
        #[allow(clippy::needless_update)]
        impl #parameters #krate::Job for #ident #arguments #bounds {
            type Output = #output;
            const TYPE: &'static str = #job_type;
            const DEFAULTS: #krate::Defaults = #krate::Defaults {
                #queue #priority #max_attempts #timeout #lease #retry #tags
                ..#krate::Defaults::NEW
            };
        }
    }
}

#[cfg(test)]
mod tests;
