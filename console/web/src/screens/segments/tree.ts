import { newId, type Group, type Node } from './model'

/** Changes of the tree. Each returns a new one; what did not change is the same object. */

/** The node with an id and the group that holds it. */
export function find(root: Group, id: string): { node: Node; parent: Group | null; index: number } | null {
  if (root.id === id) return { node: root, parent: null, index: 0 }
  for (const [index, node] of root.conditions.entries()) {
    if (node.id === id) return { node, parent: root, index }
    const inside = node.kind === 'group' ? find(node, id) : null
    if (inside) return inside
  }
  return null
}

/** Replaces the node with an id by what change makes of it. */
export function change(root: Group, id: string, fn: (n: Node) => Node): Group {
  if (root.id === id) return fn(root) as Group
  let changed = false
  const conditions = root.conditions.map((c) => {
    const next = c.id === id ? fn(c) : c.kind === 'group' ? change(c, id, fn) : c
    changed ||= next !== c
    return next
  })
  return changed ? { ...root, conditions } : root
}

/** Puts a node into the group with an id, at an index. */
export const insert = (root: Group, group: string, index: number, node: Node): Group =>
  change(root, group, (g) => (g.kind === 'group' ? { ...g, bare: undefined, conditions: g.conditions.toSpliced(index, 0, node) } : g))

/** Takes a node out, and groups that have nothing left; the root stays. */
export function remove(root: Group, id: string): Group {
  const conditions = root.conditions.flatMap((c): Node[] => {
    if (c.id === id) return []
    if (c.kind !== 'group') return [c]
    const inside = remove(c, id)
    return inside.conditions.length === 0 ? [] : [inside]
  })
  return conditions.length === root.conditions.length && conditions.every((c, i) => c === root.conditions[i]) ? root : { ...root, conditions }
}

export const holds = (n: Node, id: string): boolean => n.id === id || (n.kind === 'group' && n.conditions.some((c) => holds(c, id)))

/** Moves a node before the index of a group; nothing happens when the group is inside it. */
export function move(root: Group, id: string, group: string, index: number): Group {
  const found = find(root, id)
  if (!found?.parent || holds(found.node, group)) return root
  // Marked first: taking it out shifts the places behind it.
  const target = find(root, group)?.node
  if (target?.kind !== 'group') return root
  const before = target.conditions.slice(index).find((c) => c.id !== id)
  const rest = remove(root, id)
  const now = find(rest, group)?.node
  if (now?.kind !== 'group') {
    // The group held only what was moved within it: nothing to do.
    return root
  }
  const to = before ? now.conditions.findIndex((c) => c.id === before.id) : now.conditions.length
  return insert(rest, group, to < 0 ? now.conditions.length : to, found.node)
}

/** Moves a node one place up or down; at the end of a group it leaves it, and into one that is next to it it goes. */
export function step(root: Group, id: string, by: -1 | 1): Group {
  const found = find(root, id)
  if (!found?.parent) return root
  const { parent, index } = found
  const next = parent.conditions[index + by]
  if (next?.kind === 'group') return move(root, id, next.id, by < 0 ? next.conditions.length : 0)
  if (next) return move(root, id, parent.id, by < 0 ? index - 1 : index + 2)
  const outer = find(root, parent.id)
  if (!outer?.parent) return root
  return move(root, id, outer.parent.id, by < 0 ? outer.index : outer.index + 1)
}

/** The same with new ids. */
export function copy(n: Node): Node {
  switch (n.kind) {
    case 'group':
      return { ...n, id: newId(), conditions: n.conditions.map(copy) }
    case 'activity':
      return { ...n, id: newId(), where: n.where.map((f) => ({ ...f, id: newId() })) }
    default:
      return { ...n, id: newId() }
  }
}

export function duplicate(root: Group, id: string): Group {
  const found = find(root, id)
  return found?.parent ? insert(root, found.parent.id, found.index + 1, copy(found.node)) : root
}

/** Puts a group of its own around a node. */
export const wrap = (root: Group, id: string): Group => (root.id === id ? root : change(root, id, (n) => ({ kind: 'group', id: newId(), match: 'any', conditions: [n] })))

/** Puts the conditions of a group in its place. */
export function unwrap(root: Group, id: string): Group {
  const found = find(root, id)
  if (!found?.parent || found.node.kind !== 'group') return root
  const inside = found.node.conditions
  return change(root, found.parent.id, (g) => (g.kind === 'group' ? { ...g, conditions: g.conditions.toSpliced(found.index, 1, ...inside) } : g))
}

/** The nodes by their place, as the server names it: conditions[0].conditions[1]; the root is "". */
export function places(root: Group): Map<string, Node> {
  const out = new Map<string, Node>()
  const visit = (n: Node, path: string) => {
    out.set(path, n)
    if (n.kind === 'group') n.conditions.forEach((c, i) => visit(c, `${path ? path + '.' : ''}conditions[${i}]`))
  }
  visit(root.bare && root.conditions.length === 1 ? root.conditions[0]! : root, '')
  return out
}

/** The node that a message begins with the place of, and the message without the place. */
export function placed(root: Group, message: string): { node: Node | null; text: string } {
  const path = /^(?:conditions\[\d+\](?:\.conditions\[\d+\])*)/.exec(message)?.[0] ?? ''
  const node = places(root).get(path) ?? null
  return { node, text: message.slice(path.length).replace(/^[.:]\s*/, '') }
}

/** Both trees say the same, whatever their ids. */
export const size = (n: Node): number => (n.kind === 'group' ? 1 + n.conditions.reduce((s, c) => s + size(c), 0) : 1)
