/** Logging: an interface that most loggers satisfy, and the default. */

/** Fields of a log record, such as `task`, `kind` and `attempt`. */
export type LogFields = Readonly<Record<string, unknown>>;

/** A logger. `console` and winston are such loggers; README.md shows an adapter for pino. */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

function write(level: string, message: string, fields?: LogFields): void {
  let line = `${new Date().toISOString()} ${level} ${message}`;
  for (const [name, value] of Object.entries(fields ?? {})) {
    line += ` ${name}=${value instanceof Error ? JSON.stringify(value.stack) : JSON.stringify(value)}`;
  }
  // Standard output belongs to the program; the log goes to standard error.
  process.stderr.write(`${line}\n`);
}

/** The default logger: one line a record on standard error, without debug records. */
export const standardError: Logger = {
  debug: () => {},
  info: (message, fields) => write("INFO", message, fields),
  warn: (message, fields) => write("WARN", message, fields),
  error: (message, fields) => write("ERROR", message, fields),
};

/** Returns a logger that adds fields to every record. */
export function withFields(logger: Logger, fields: LogFields): Logger {
  return {
    debug: (message, more) => logger.debug(message, { ...fields, ...more }),
    info: (message, more) => logger.info(message, { ...fields, ...more }),
    warn: (message, more) => logger.warn(message, { ...fields, ...more }),
    error: (message, more) => logger.error(message, { ...fields, ...more }),
  };
}
