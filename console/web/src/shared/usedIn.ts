import { notifications } from '@mantine/notifications'

export interface Use {
  kind: string
  _id: string
  name: string
}

export const namesOfUses = (uses: Use[]) => uses.map((u) => `${u.kind} ${u.name}`).join(', ')

/** Says that something cannot be deleted while it is used; false where it is not used. */
export function keptBy(name: string, uses: Use[]): boolean {
  if (uses.length === 0) return false
  notifications.show({ color: 'red', title: `${name} is in use`, message: `It cannot be deleted while it is used in ${namesOfUses(uses)}.` })
  return true
}
