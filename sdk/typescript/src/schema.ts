/**
 * Schemas of payloads and results: the Standard Schema interface, which zod, valibot and arktype
 * have.
 */

/** The result of a validation. */
export type Validation<Out> =
  | { readonly value: Out; readonly issues?: undefined }
  | { readonly issues: readonly Issue[] };

/** One fault that a validation found. */
export interface Issue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/**
 * A schema in the form of Standard Schema, version 1: `In` is what is validated, `Out` is the
 * result.
 */
export interface Schema<In = unknown, Out = In> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => Validation<Out> | Promise<Validation<Out>>;
    readonly types?: { readonly input: In; readonly output: Out } | undefined;
  };
}

/** A schema, or none. */
export type MaybeSchema = Schema<unknown, unknown> | undefined;

/** The type of the values that a schema accepts; `unknown` without a schema. */
export type InputOf<S> =
  S extends Schema<unknown, unknown> ? NonNullable<S["~standard"]["types"]>["input"] : unknown;

/** The type of the values that a schema returns; `unknown` without a schema. */
export type OutputOf<S> =
  S extends Schema<unknown, unknown> ? NonNullable<S["~standard"]["types"]>["output"] : unknown;

/** The schema of payloads and results that are bytes and not JSON. */
export const bytes: Schema<Uint8Array> = {
  "~standard": {
    version: 1,
    vendor: "onward",
    validate: (value) =>
      value instanceof Uint8Array ? { value } : { issues: [{ message: "the value is not a Uint8Array" }] },
  },
};
