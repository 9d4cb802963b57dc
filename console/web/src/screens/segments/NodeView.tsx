import { ActionIcon, Button, Checkbox, Group as Row, Menu, NativeSelect, Stack, Text, Tooltip } from '@mantine/core'
import { useRef, useState, type CSSProperties, type DragEvent, type KeyboardEvent, type ReactNode } from 'react'
import { count } from '@/shared/format'
import { Icon, type IconName } from '@/shared/icons'
import { ActivityInputs } from './ActivityInputs'
import classes from './builder.module.css'
import { faultId, useBuilder } from './context'
import { AttributeInputs, ConsentInputs, MembershipInputs } from './LeafInputs'
import { Pick, Word } from './inputs'
import { leafKinds, newNode, ofKind, type Group, type Leaf, type Node } from './model'
import { change, duplicate, find, insert, move, remove, step, unwrap, wrap } from './tree'

export const kindNames: Record<Node['kind'], string> = { activity: 'What they did', attribute: 'Profile fields and attributes', consent: 'Consent to a channel', list: 'On a list', segment: 'In another segment', group: 'Group of conditions' }
const kindIcons: Record<Node['kind'], IconName> = { activity: 'activity', attribute: 'tag', consent: 'mail', list: 'list', segment: 'segment', group: 'group' }

/** A group: whether all or any of its conditions must hold, and the conditions. */
export function GroupView({ group, path, tools }: { group: Group; path: string; tools?: ReactNode }) {
  const { edit, focus, dragging, setDragging, problems } = useBuilder()
  const set = (fn: (g: Group) => Group) => edit((root) => change(root, group.id, (n) => fn(n as Group)))
  const add = (kind: Node['kind']) => {
    const node = newNode(kind)
    edit((root) => insert(root, group.id, group.conditions.length, node))
    focus(node.kind === 'group' ? node.conditions[0]!.id : node.id)
  }
  const onDropAtEnd = (e: DragEvent) => {
    if (!dragging) return
    e.preventDefault()
    e.stopPropagation()
    edit((root) => move(root, dragging, group.id, group.conditions.length))
    setDragging(null)
  }
  return (
    <div className={classes.group} data-match={group.match} role="group" aria-label={path ? `Group ${path}` : 'All conditions'}>
      <Row gap={6} mb={6} wrap="nowrap" align="flex-start">
        <Pick<'all' | 'any'>
          value={group.match}
          onChange={(match) => set((g) => ({ ...g, match, bare: undefined }))}
          label="How the conditions of this group are joined"
          choices={[
            { value: 'all', label: 'all' },
            { value: 'any', label: 'any' },
          ]}
        />
        <Word>of these are true</Word>
        {tools && (
          <Row gap={6} wrap="nowrap" align="flex-start" ml="auto">
            {tools}
          </Row>
        )}
      </Row>
      <Stack gap={6}>
        {group.conditions.map((n, i) => (
          <NodeView key={n.id} node={n} path={path ? `${path}.${i + 1}` : String(i + 1)} last={i === group.conditions.length - 1} match={group.match} />
        ))}
      </Stack>
      {problems.has(group.id) && (
        <Text size="xs" c="dimmed" mt={4}>
          {problems.get(group.id)!.text}
        </Text>
      )}
      <div onDragOver={(e) => dragging && e.preventDefault()} onDrop={onDropAtEnd}>
        <Menu position="bottom-start">
          <Menu.Target>
            <Button variant="subtle" size="compact-xs" mt={6} leftSection={<Icon name="plus" size={14} />}>
              Add a condition
            </Button>
          </Menu.Target>
          <Menu.Dropdown>
            {(Object.keys(kindNames) as Node['kind'][]).map((kind) => (
              <Menu.Item key={kind} leftSection={<Icon name={kindIcons[kind]} size={14} />} onClick={() => add(kind)}>
                {kindNames[kind]}
              </Menu.Item>
            ))}
          </Menu.Dropdown>
        </Menu>
      </div>
      {!path && (
        <Checkbox
          size="xs"
          mt={8}
          label="Anonymous people too"
          description="People without an e-mail, external id or phone yet: visitors known from the tracking API."
          checked={group.includeAnonymous ?? false}
          onChange={(e) => {
            const include = e.currentTarget.checked
            set((g) => ({ ...g, bare: undefined, includeAnonymous: include || undefined }))
          }}
        />
      )}
    </div>
  )
}

/** A condition or a group in a group: a card that can be moved, copied and removed. */
function NodeView({ node, path, last, match }: { node: Node; path: string; last: boolean; match: 'all' | 'any' }) {
  const { edit, focus, problems, said, dragging, setDragging, root } = useBuilder()
  const [drop, setDrop] = useState<'before' | 'after' | null>(null)
  const message = said.get(node.id)
  const wrong = problems.get(node.id)
  const stepBy = (by: -1 | 1) => {
    edit((r) => step(r, node.id, by))
    focus(node.id)
  }
  const onKeyDown = (e: KeyboardEvent) => {
    if (!e.altKey || e.ctrlKey || e.metaKey) return
    if (e.key === 'ArrowUp' || e.key === 'ArrowDown') {
      e.preventDefault()
      e.stopPropagation()
      stepBy(e.key === 'ArrowUp' ? -1 : 1)
    }
  }
  const side = (e: DragEvent<HTMLElement>) => {
    const box = e.currentTarget.getBoundingClientRect()
    return e.clientY < box.top + box.height / 2 ? 'before' : 'after'
  }
  const onDrop = (e: DragEvent<HTMLElement>) => {
    setDrop(null)
    if (!dragging) return
    e.preventDefault()
    e.stopPropagation()
    const where = side(e)
    edit((r) => {
      const here = find(r, node.id)
      return here?.parent ? move(r, dragging, here.parent.id, here.index + (where === 'after' ? 1 : 0)) : r
    })
    setDragging(null)
  }
  const tools = (
    <>
      <Counts id={node.id} />
      <Menu position="bottom-end">
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" aria-label={`Actions of condition ${path}`}>
            <Icon name="dots" />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item leftSection={<Icon name="arrowUp" size={14} />} rightSection={<Text size="xs">Alt ↑</Text>} onClick={() => stepBy(-1)}>
            Move up
          </Menu.Item>
          <Menu.Item leftSection={<Icon name="arrowDown" size={14} />} rightSection={<Text size="xs">Alt ↓</Text>} onClick={() => stepBy(1)}>
            Move down
          </Menu.Item>
          <Menu.Item leftSection={<Icon name="copy" size={14} />} onClick={() => edit((r) => duplicate(r, node.id))}>
            Duplicate
          </Menu.Item>
          {node.kind === 'group' ? (
            <Menu.Item leftSection={<Icon name="group" size={14} />} onClick={() => edit((r) => unwrap(r, node.id))}>
              Take out of the group
            </Menu.Item>
          ) : (
            <Menu.Item leftSection={<Icon name="group" size={14} />} onClick={() => (edit((r) => wrap(r, node.id)), focus(node.id))}>
              Put into a group
            </Menu.Item>
          )}
          <Menu.Divider />
          <Menu.Item
            leftSection={<Icon name="trash" size={14} />}
            onClick={() => {
              const here = find(root, node.id)
              const next = here?.parent?.conditions[here.index + 1] ?? here?.parent?.conditions[here.index - 1]
              edit((r) => remove(r, node.id))
              if (next) focus(next.id)
            }}
          >
            Remove
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
    </>
  )
  return (
    <div
      id={`node-${node.id}`}
      tabIndex={-1}
      className={`${classes.card} ${drop ? classes.drop : ''}`}
      data-at={drop ?? undefined}
      data-dragged={dragging === node.id || undefined}
      data-refused={message?.refused || undefined}
      role="group"
      aria-label={`Condition ${path}: ${kindNames[node.kind]}`}
      onKeyDown={onKeyDown}
      onDragOver={(e) => {
        if (!dragging || dragging === node.id) return
        e.preventDefault()
        e.stopPropagation()
        setDrop(side(e))
      }}
      onDragLeave={() => setDrop(null)}
      onDrop={onDrop}
    >
      <div className={classes.row}>
        <span
          className={classes.handle}
          draggable
          title="Drag to move"
          onDragStart={(e) => {
            e.dataTransfer.effectAllowed = 'move'
            e.dataTransfer.setData('text/plain', node.id)
            setDragging(node.id)
          }}
          onDragEnd={() => setDragging(null)}
          style={{ padding: '7px 0', color: 'var(--mantine-color-dimmed)' }}
        >
          <Icon name="grip" size={16} />
        </span>
        <div style={{ flex: 1, minWidth: 0 }}>
          {node.kind === 'group' ? <GroupView group={node} path={path} tools={tools} /> : <LeafView node={node} path={path} />}
          {wrong && node.kind !== 'group' && <Note id={faultId(node.id)} text={wrong.text} colour={wrong.place ? 'var(--mantine-color-error)' : undefined} icon={wrong.place ? 'alert' : undefined} />}
          {message && !wrong && <Note id={faultId(node.id)} text={message.text} colour={message.refused ? 'var(--mantine-color-error)' : undefined} icon="alert" />}
        </div>
        {node.kind !== 'group' && tools}
      </div>
      {!last && (
        <Text size="xs" c="dimmed" style={{ position: 'absolute', bottom: -12, insetInlineStart: 30, zIndex: 1, background: 'var(--mantine-color-body)', paddingInline: 4, pointerEvents: 'none' }}>
          {match === 'all' ? 'and' : 'or'}
        </Text>
      )}
    </div>
  )
}

/** A condition: its kind, which can be changed in place, and what it says. */
function LeafView({ node, path }: { node: Leaf; path: string }) {
  const { edit } = useBuilder()
  // Arrow keys in the list of kinds pass by others: who comes back finds what was filled in.
  const filled = useRef(new Map<Leaf['kind'], Leaf>())
  const setKind = (kind: Leaf['kind']) => {
    filled.current.set(node.kind, node)
    const next = filled.current.get(kind) ?? ofKind(node, kind)
    edit((root) => change(root, node.id, () => next))
  }
  return (
    <div>
      <NativeSelect
        size="xs"
        variant="unstyled"
        aria-label={`Kind of condition ${path}`}
        data={leafKinds.map((kind) => ({ value: kind, label: kindNames[kind] }))}
        value={node.kind}
        onChange={(e) => setKind(e.currentTarget.value as Leaf['kind'])}
        rightSectionWidth={20}
        classNames={{ root: classes.kindOf, input: classes.kind }}
        styles={{ wrapper: { '--input-height': '20px', '--input-size': '20px' } as CSSProperties }}
      />
      <LeafInputs node={node} />
    </div>
  )
}

function LeafInputs({ node }: { node: Leaf }): ReactNode {
  const { edit } = useBuilder()
  const set = <N extends Node>(fn: (n: N) => N) => edit((root) => change(root, node.id, (n) => fn(n as N)))
  switch (node.kind) {
    case 'activity':
      return <ActivityInputs node={node} set={set} />
    case 'attribute':
      return <AttributeInputs node={node} set={set} />
    case 'consent':
      return <ConsentInputs node={node} set={set} />
    case 'list':
    case 'segment':
      return <MembershipInputs node={node} set={set} />
  }
}

function Note({ id, text, colour = 'dimmed', icon }: { id: string; text: string; colour?: string; icon?: IconName }) {
  return (
    <Row gap={4} wrap="nowrap" mt={4} align="flex-start" c={colour} data-testid="fault" aria-live="polite">
      {icon && <Icon name={icon} size={14} />}
      <Text size="xs" id={id}>
        {text}
      </Text>
    </Row>
  )
}

function Counts({ id }: { id: string }) {
  const { counts, stale } = useBuilder()
  const c = counts.get(id)
  if (!c) return <div className={classes.counts} />
  return (
    <Tooltip multiline w={240} label={`${count(c.count)} people match this condition alone. Without it the segment would have ${count(c.without)}.`}>
      <div className={`${classes.counts} numbers ${stale ? classes.stale : ''}`} data-testid="condition-count">
        <Text size="sm" fw={600}>
          {count(c.count)}
        </Text>
        <Text size="xs" c="dimmed" style={{ whiteSpace: 'nowrap' }}>
          without: {count(c.without)}
        </Text>
      </div>
    </Tooltip>
  )
}
