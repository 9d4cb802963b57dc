interface PageOf<T> {
  data: T[]
  next?: string | null
}

/** Reads a list page by page, up to a number of entries. */
export async function allPages<T>(read: (cursor: string | undefined) => Promise<PageOf<T>>, most = 5000): Promise<T[]> {
  const out: T[] = []
  let cursor: string | undefined
  do {
    const page = await read(cursor)
    out.push(...page.data)
    cursor = page.next ?? undefined
  } while (cursor && out.length < most)
  return out
}
