const REDACTED = '[redacted]';

/** Returns a function that blanks the secret, also in base64 and hex, wherever it occurs in a text. */
export function redactor(secret: string): (text: string) => string {
  const bytes = Buffer.from(secret, 'utf8');
  const forms = [
    secret,
    encodeURIComponent(secret),
    bytes.toString('base64'),
    bytes.toString('base64url'),
    bytes.toString('hex'),
  ];
  return (text) => forms.reduce((cleaned, form) => cleaned.replaceAll(form, REDACTED), text);
}
