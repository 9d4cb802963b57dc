import { whole } from '@/shared/api/client'

interface Paged<T> {
  data: T[]
  next?: string | null
}

/** Reads a paginated list to its end. It is for lists that are short by their nature. */
export async function allPages<T>(page: (cursor: string | undefined) => Promise<{ data?: Paged<T>; error?: unknown; response: Response }>): Promise<T[]> {
  const out: T[] = []
  let cursor: string | undefined
  do {
    const p = await whole(page(cursor))
    out.push(...p.data)
    cursor = p.next ?? undefined
  } while (cursor)
  return out
}
