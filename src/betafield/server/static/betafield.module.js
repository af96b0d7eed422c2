import "./betafield.js";

export const { Study, Refused, Away } = globalThis.Betafield;
