import { ActionIcon, Badge, Box, Code, Group, Menu, Stack, Text, UnstyledButton } from '@mantine/core'
import { useVirtualizer } from '@tanstack/react-virtual'
import { useRef, useState } from 'react'
import { CopyButton } from '@/shared/CopyButton'
import { count, instant, timeOfDay } from '@/shared/format'
import { Icon } from '@/shared/icons'
import { parseJson, writeJson, type Json } from '@/shared/json'
import { ScreenLink } from '@/shared/ScreenLink'
import { valueAt, type Entry, type Gap, type Identity, type Refused, type Stored } from './log'
import classes from './live.module.css'

interface Props {
  entries: readonly Entry[]
  columns: string[]
  segmentName: (id: string) => string
  onPerson: (id: string) => void
  onType: (type: string) => void
  /** A row was opened. */
  onOpen: () => void
  /** Where the events can be seen that a broken connection left out. */
  elsewhere?: React.ReactNode
}

function gapInWords(e: Gap): string {
  const lost = `The connection was lost from ${timeOfDay(e.from)} to ${timeOfDay(e.to)}.`
  if (e.read === undefined) return e.missed !== undefined ? `${count(e.missed)} events are not shown here: more came than this page could take. They are stored.` : `${lost} Events of that time are stored, but not shown here.`
  if (e.missed !== undefined) return `${lost} The newest ${count(e.read)} events of that time stand above; ${count(e.missed)} more are stored.`
  return e.read === 0 ? `${lost} No event came meanwhile.` : `${lost} ${e.read === 1 ? 'The event' : `The ${count(e.read)} events`} of that time ${e.read === 1 ? 'stands' : 'stand'} above.`
}

const identifier = (i: Identity) => i.email ?? i.external_id ?? i.phone ?? ''

/** Events in rows, the newest first; only those in view are drawn. Each opens to its details. */
export function EventLog({ entries, onOpen, ...rest }: Props) {
  const parent = useRef<HTMLDivElement>(null)
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set())
  const rows = useVirtualizer({ count: entries.length, getScrollElement: () => parent.current, estimateSize: () => 36, overscan: 12, getItemKey: (i) => entries[i]!.key })
  const toggle = (key: number) => {
    const next = new Set(open)
    if (!next.delete(key)) {
      next.add(key)
      onOpen()
    }
    setOpen(next)
  }
  return (
    <div ref={parent} className={classes.scroll} tabIndex={0} role="region" aria-label="Events, the newest first">
      <div role="list" style={{ height: rows.getTotalSize(), position: 'relative' }}>
        {rows.getVirtualItems().map((item) => {
          const e = entries[item.index]!
          return (
            <div key={item.key} ref={rows.measureElement} data-index={item.index} role="listitem" aria-posinset={item.index + 1} aria-setsize={entries.length} className={classes.row} style={{ transform: `translateY(${item.start}px)` }}>
              {e.kind === 'gap' ? (
                <Text size="xs" c="dimmed" ta="center" py={6}>
                  {gapInWords(e)} {e.missed === undefined && e.read === undefined && rest.elsewhere}
                </Text>
              ) : (
                <>
                  <UnstyledButton w="100%" px="sm" py={6} aria-expanded={open.has(e.key)} onClick={() => toggle(e.key)} className={classes.line}>
                    <Line e={e} columns={rest.columns} segmentName={rest.segmentName} open={open.has(e.key)} />
                  </UnstyledButton>
                  {open.has(e.key) && <Box px="sm" pb="sm" pl={{ base: 'sm', sm: 40 }}>{e.kind === 'event' ? <Details e={e} {...rest} /> : <Refusal e={e} />}</Box>}
                </>
              )}
            </div>
          )
        })}
      </div>
    </div>
  )
}

function Line({ e, columns, segmentName, open }: { e: Stored | Refused; columns: string[]; segmentName: (id: string) => string; open: boolean }) {
  const who = identifier(e.identity)
  return (
    <Group gap="sm" wrap="nowrap">
      <Icon name={open ? 'chevronDown' : 'chevronRight'} size={14} />
      <div className={classes.cells}>
        <Text size="xs" c="dimmed" className={`numbers ${classes.time}`}>
          {timeOfDay(e.timestamp)}
        </Text>
        <Text size="sm" fw={600} truncate className={classes.type}>
          {e.event_type || 'no type'}
        </Text>
        <Text size="sm" truncate className={classes.who}>
          {who || (e.kind === 'event' ? e.profile_id : 'nobody')}
        </Text>
        {e.kind === 'refused' ? (
          <>
            <Badge size="sm" color="red.9" variant="filled" tt="none" style={{ flex: 'none' }}>
              refused
            </Badge>
            <Text size="sm" className={classes.reason}>
              {e.reason}
            </Text>
          </>
        ) : (
          <>
            {e.outcome === 'duplicate' && (
              <Badge size="sm" color="gray.7" variant="filled" tt="none" style={{ flex: 'none' }}>
                repeat
              </Badge>
            )}
            {e.transitions.map((t) => (
              <Badge key={t.segment_id + t.change} size="sm" color={t.change === 'entered' ? 'teal.9' : 'gray.7'} variant="filled" tt="none" maw={200} style={{ flex: 'none' }}>
                {t.change} {segmentName(t.segment_id)}
              </Badge>
            ))}
            {columns.length > 0 ? (
              columns.map((c) => (
                <Text key={c} size="sm" w={140} truncate visibleFrom="sm" title={`${c}: ${shown(valueAt(e.properties, c))}`} style={{ flex: 'none' }}>
                  <Text span size="xs" c="dimmed">
                    {c}{' '}
                  </Text>
                  {shown(valueAt(e.properties, c))}
                </Text>
              ))
            ) : (
              <Text size="xs" c="dimmed" ff="monospace" truncate visibleFrom="sm">
                {Object.entries(e.properties).map(([k, v]) => `${k}: ${shown(v)}`).join('  ')}
              </Text>
            )}
          </>
        )}
      </div>
    </Group>
  )
}

const shown = (v: unknown) => (v === undefined ? '–' : typeof v === 'string' ? v : JSON.stringify(v))

function Details({ e, segmentName, onPerson, onType }: { e: Stored } & Pick<Props, 'segmentName' | 'onPerson' | 'onType'>) {
  const whole = parseJson(e.text) as { [key: string]: Json }
  const text = writeJson(whole.properties, 2)
  return (
    <Stack gap="xs">
      <Group gap="lg" wrap="wrap">
        <Fact label="Person">
          <ScreenLink to="/people/$id" params={{ id: e.profile_id }} size="sm">
            {identifier(e.identity) || e.profile_id}
          </ScreenLink>
        </Fact>
        <Fact label="Time">{instant(e.timestamp)}</Fact>
        <Fact label="Identifiers">{[e.identity.email, e.identity.external_id, e.identity.phone].filter(Boolean).join(', ') || 'none'}</Fact>
        <Menu position="bottom-start">
          <Menu.Target>
            <ActionIcon variant="subtle" color="gray" aria-label="Watch more of this">
              <Icon name="filter" />
            </ActionIcon>
          </Menu.Target>
          <Menu.Dropdown>
            <Menu.Item onClick={() => onPerson(e.profile_id)}>Only this person</Menu.Item>
            <Menu.Item onClick={() => onType(e.event_type)}>Only {e.event_type}</Menu.Item>
          </Menu.Dropdown>
        </Menu>
      </Group>
      <Box>
        <Text size="xs" c="dimmed">
          Segments
        </Text>
        {e.late ? (
          <Text size="sm">
            It came while the connection was lost. Which segments it moved is in{' '}
            <ScreenLink to="/people/$id" params={{ id: e.profile_id }} size="sm" underline="always">
              the person’s timeline
            </ScreenLink>
            .
          </Text>
        ) : e.transitions.length === 0 ? (
          <Text size="sm">{e.outcome === 'duplicate' ? 'A repeat under the same idempotency key: it changed nothing.' : 'The event moved the person into no segment and out of none.'}</Text>
        ) : (
          e.transitions.map((t) => (
            <Text key={t.segment_id + t.change} size="sm">
              {t.change === 'entered' ? 'Entered' : 'Left'}{' '}
              <ScreenLink to="/segments/$id/edit" params={{ id: t.segment_id }} size="sm">
                {segmentName(t.segment_id)}
              </ScreenLink>
            </Text>
          ))
        )}
      </Box>
      <Raw label="Properties" text={text} />
    </Stack>
  )
}

function Refusal({ e }: { e: Refused }) {
  return (
    <Stack gap="xs">
      <Fact label="Why it was refused">{e.reason}</Fact>
      <Raw label={e.body_bytes > e.body.length ? `Body, the first ${count(e.body.length)} of ${count(e.body_bytes)} bytes` : 'Body as it was sent'} text={e.body} />
      <Text size="xs" c="dimmed">
        Values whose keys look like secrets are left out. None of it is stored: fix the program and send it again.
      </Text>
    </Stack>
  )
}

function Fact({ label, children }: { label: string; children: React.ReactNode }) {
  return (
    <Box miw={0}>
      <Text size="xs" c="dimmed">
        {label}
      </Text>
      <Text size="sm" component="div" style={{ overflowWrap: 'anywhere' }}>
        {children}
      </Text>
    </Box>
  )
}

function Raw({ label, text }: { label: string; text: string }) {
  return (
    <Box>
      <Group gap="xs" justify="space-between" mb={4}>
        <Text size="xs" c="dimmed">
          {label}
        </Text>
        <CopyButton value={text} label="Copy" size="compact-xs" />
      </Group>
      <Code block tabIndex={0} aria-label={label} style={{ maxHeight: 320, overflow: 'auto', whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }}>
        {text}
      </Code>
    </Box>
  )
}
