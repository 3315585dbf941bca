/** The folder of the project, seen from the compiled tests. */
export const PROJECT = new URL("../../../../", import.meta.url);
