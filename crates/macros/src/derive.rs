//! Turns the tokens of a type into its `impl Job`, or into all errors.

use proc_macro2::{Literal, TokenStream};
use quote::quote;
use syn::{
    Attribute, Data, DeriveInput, Error, Fields, GenericParam, Ident, LitStr, Result, ext::IdentExt, parse_quote,
};

use crate::{
    attributes::Attributes,
    errors::Errors,
    name::{self, Alphabet},
};

/// Expands the derive.
pub(crate) fn expand(input: TokenStream) -> Result<TokenStream> {
    let input: DeriveInput = syn::parse2(input)?;
    let mut errors = Errors::default();
    check_shape(&input, &mut errors);
    let attributes = Attributes::parse(&input.attrs, &mut errors);
    let job_type = attributes.job_type.clone().unwrap_or_else(|| default_job_type(&input.ident, &mut errors));
    errors.finish()?;
    Ok(implementation(&input, &attributes, &job_type))
}

fn check_shape(input: &DeriveInput, errors: &mut Errors) {
    for parameter in &input.generics.params {
        let name = match parameter {
            GenericParam::Type(parameter) => parameter.ident.to_string(),
            GenericParam::Lifetime(parameter) => parameter.lifetime.to_string(),
            GenericParam::Const(_) => continue,
        };
        let message =
            format!("a job cannot be generic over `{name}`: a job type has one payload type, which owns its data");
        errors.add(Error::new_spanned(parameter, message));
    }
    match &input.data {
        Data::Struct(data) => check_fields(&data.fields, errors),
        Data::Enum(data) => {
            for variant in &data.variants {
                reject_job_attribute(&variant.attrs, "variant", errors);
                check_fields(&variant.fields, errors);
            }
        }
        Data::Union(data) => errors.add(Error::new(
            data.union_token.span,
            "a union cannot be a job, because it does not say which field is the payload; use a struct or an enum",
        )),
    }
}

fn check_fields(fields: &Fields, errors: &mut Errors) {
    for field in fields {
        reject_job_attribute(&field.attrs, "field", errors);
    }
}

/// Rejects `#[job(…)]` inside the type. The compiler would accept it there and the derive would ignore it.
fn reject_job_attribute(attributes: &[Attribute], place: &str, errors: &mut Errors) {
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("job")) {
        errors.add(Error::new_spanned(attribute, format!("`#[job(...)]` belongs on the type, not on a {place}")));
    }
}

fn default_job_type(ident: &Ident, errors: &mut Errors) -> LitStr {
    let name = ident.unraw().to_string();
    if let Err(problem) = name::check(&name, Alphabet::WithColon) {
        let message =
            format!("this name cannot be the job type, which {problem}; set another with `#[job(type = \"...\")]`");
        errors.add(Error::new(ident.span(), message));
    }
    LitStr::new(&name, ident.span())
}

fn implementation(input: &DeriveInput, attributes: &Attributes, job_type: &LitStr) -> TokenStream {
    let krate = attributes.krate.clone().unwrap_or_else(|| parse_quote!(::orchestrix));
    let output = attributes.output.clone().unwrap_or_else(|| parse_quote!(()));
    let ident = &input.ident;
    let (parameters, arguments, bounds) = input.generics.split_for_impl();

    let queue = attributes.queue.as_ref().map(|queue| quote!(queue: #queue,));
    let priority = attributes.priority.map(Literal::i16_unsuffixed).map(|priority| quote!(priority: #priority,));
    let max_attempts =
        attributes.max_attempts.map(Literal::u16_unsuffixed).map(|attempts| quote!(max_attempts: #attempts,));
    let timeout = attributes.timeout.as_ref().map(|timeout| quote!(timeout: ::core::option::Option::Some(#timeout),));
    let lease = attributes.lease.as_ref().map(|lease| quote!(lease: #lease,));
    let retry = attributes.retry.as_ref().map(|retry| retry.expression(&krate)).map(|retry| quote!(retry: #retry,));
    let tags = attributes.tags.as_ref().map(|tags| quote!(tags: &[#(#tags),*],));

    // If every field is given, clippy would warn the caller about `..NEW`.
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
