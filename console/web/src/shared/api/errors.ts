/** Why a call failed, as the server says it. */
export class ApiError extends Error {
  /** HTTP status; 0 when there was no answer. */
  readonly status: number
  /** The field of the body or the parameter at fault, "" for none. */
  readonly field: string
  /** Seconds after which repeating the call may help, 0 if it is not known. */
  readonly retryAfter: number

  constructor(status: number, message: string, field = '', retryAfter = 0) {
    super(message)
    this.status = status
    this.field = field
    this.retryAfter = retryAfter
  }

  /** The server is away or overloaded: the same call may succeed later. */
  get unavailable() {
    return this.status === 0 || this.status === 502 || this.status === 503 || this.status === 504
  }
  get signedOut() {
    return this.status === 401
  }
  get forbidden() {
    return this.status === 403
  }
}

/** The permission that a refused call needs, "" if the answer names none. */
export const permissionIn = (message: string) => /permission ([a-z_]+:[a-z]+)/.exec(message)?.[1] ?? ''

export const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error))
