import { layout, graphlib } from '@dagrejs/dagre'
import { Badge, Box, Group, Menu, Text, UnstyledButton, VisuallyHidden, useComputedColorScheme } from '@mantine/core'
import { Background, BaseEdge, Controls, EdgeLabelRenderer, getSmoothStepPath, Handle, Position, ReactFlow, type Edge, type EdgeProps, type Node, type NodeProps, useReactFlow } from '@xyflow/react'
import '@xyflow/react/dist/style.css'
import { createContext, useContext, useEffect, useMemo } from 'react'
import { count } from '@/shared/format'
import { Icon, type IconName } from '@/shared/icons'
import { outlets, stepNames, triggerNames, type Definition } from './model'
import { resultName } from '../people/timelineWords'

export interface StepNumbers {
  arrived: number
  at: number
  /** How many steps ended in each way, such as skipped_not_subscribed. */
  results: Record<string, number>
}

const unsentOf = (n: StepNumbers) => Object.entries(n.results).filter(([result]) => /^(skipped_|refused$|failed$)/.test(result))
const unsent = (n: StepNumbers) => unsentOf(n).reduce((sum, [, k]) => sum + k, 0)
const unsentWhy = (n: StepNumbers) => unsentOf(n).map(([result, k]) => `${count(k)} ${resultName(result)}`).join('\n')

export interface CanvasProps {
  d: Definition
  selected: string | undefined
  onSelect: (step: string) => void
  /** Inserts a step on a way; absent where nothing can be changed. */
  onInsert?: (from: string | null, key: string, type: string) => void
  /** What the flow lacks, by step; "" is the flow itself and its trigger. */
  faults: Map<string, string[]>
  numbers: Map<string, StepNumbers> | null
  summaryOf: (id: string) => string
  triggerSummary: string
}

const icons: Record<string, IconName> = { email: 'mail', sms: 'send', whatsapp: 'send', im: 'send', push: 'send', in_app: 'mail', omnichannel: 'send', wait: 'clock', condition: 'filter', split: 'flow', tag: 'tag', update_contact: 'user', webhook: 'code', exit: 'x' }
const width = 230
const height = 78
const Shown = createContext<CanvasProps | null>(null)

function StepNode({ id }: NodeProps) {
  const c = useContext(Shown)!
  const step = c.d.steps.find((s) => s.id === id)
  const trigger = id === 'trigger'
  const faults = c.faults.get(trigger ? '' : id) ?? []
  const n = trigger ? undefined : c.numbers?.get(id)
  const name = trigger ? (c.d.trigger ? triggerNames[String(c.d.trigger.type)] : 'Trigger') : (stepNames[step?.type ?? ''] ?? step?.type)
  const line = trigger ? c.triggerSummary : c.summaryOf(id)
  return (
    <>
      {!trigger && <Handle type="target" position={Position.Top} isConnectable={false} style={{ opacity: 0 }} />}
      <UnstyledButton
        onClick={() => c.onSelect(id)}
        aria-pressed={c.selected === id}
        w={width}
        h={height}
        p="xs"
        bg="var(--mantine-color-body)"
        style={{ border: `${c.selected === id ? 2 : 1}px solid ${faults.length ? 'var(--mantine-color-error)' : c.selected === id ? 'var(--mantine-primary-color-filled)' : 'var(--mantine-color-default-border)'}`, borderRadius: 'var(--mantine-radius-md)', overflow: 'hidden' }}
      >
        <Group gap={6} wrap="nowrap" justify="space-between">
          <Group gap={6} wrap="nowrap" miw={0}>
            <VisuallyHidden>{trigger ? 'Trigger: ' : `Step ${id}: `}</VisuallyHidden>
            <Icon name={trigger ? 'play' : (icons[step?.type ?? ''] ?? 'info')} size={14} />
            <Text size="sm" fw={600} truncate>
              {name}
            </Text>
          </Group>
          {faults.length > 0 && (
            <Badge size="xs" color="red.9" title={faults.join('\n')}>
              {faults.length}
              <VisuallyHidden> lacks something</VisuallyHidden>
            </Badge>
          )}
        </Group>
        <Text size="xs" c="dimmed" truncate>
          {line || '…'}
        </Text>
        {n && (
          <Text size="xs" className="numbers" data-testid={`numbers-${id}`}>
            {count(n.arrived)} came{n.at > 0 && <b>, {count(n.at)} here now</b>}
            {unsent(n) > 0 && (
              <Text span size="xs" c="var(--mantine-color-error)" title={unsentWhy(n)}>
                , {count(unsent(n))} not sent<VisuallyHidden> ({unsentWhy(n)})</VisuallyHidden>
              </Text>
            )}
          </Text>
        )}
      </UnstyledButton>
      <Handle type="source" position={Position.Bottom} isConnectable={false} style={{ opacity: 0 }} />
    </>
  )
}

function EndNode() {
  return (
    <Box w={60} ta="center">
      <Handle type="target" position={Position.Top} isConnectable={false} style={{ opacity: 0 }} />
      <Text size="xs" c="dimmed">
        End
      </Text>
    </Box>
  )
}

function Way({ id, source, sourceX, sourceY, targetX, targetY, sourcePosition, targetPosition, data }: EdgeProps) {
  const c = useContext(Shown)!
  const { key, label, at } = data as { key: string; label: string; at?: { x: number; y: number } }
  const [straight, middleX, middleY] = getSmoothStepPath({ sourceX, sourceY, targetX, targetY, sourcePosition, targetPosition })
  const { x, y } = at ?? { x: middleX, y: middleY }
  // The way leads through the place that the layout keeps free for what stands on it.
  const above = at && getSmoothStepPath({ sourceX, sourceY, targetX: x, targetY: y, sourcePosition, targetPosition })[0]
  const below = at && getSmoothStepPath({ sourceX: x, sourceY: y, targetX, targetY, sourcePosition, targetPosition })[0]
  const from = source === 'trigger' ? null : source
  return (
    <>
      <BaseEdge id={id} path={at ? `${above} ${below}` : straight} />
      <EdgeLabelRenderer>
        <Group gap={4} wrap="nowrap" style={{ position: 'absolute', transform: `translate(-50%,-50%) translate(${x}px,${y}px)`, pointerEvents: 'all', zIndex: 1 }} className="nodrag nopan">
          {label && (
            <Text size="xs" bg="var(--mantine-color-body)" px={4}>
              {label}
            </Text>
          )}
          {c.onInsert && (
            <Menu position="bottom">
              <Menu.Target>
                <UnstyledButton aria-label={`Add a step after ${from ?? 'the trigger'}${label ? `, ${label}` : ''}`} w={20} h={20} bg="var(--mantine-color-body)" style={{ border: '1px solid var(--mantine-color-default-border)', borderRadius: '50%', display: 'grid', placeItems: 'center' }}>
                  <Icon name="plus" size={12} />
                </UnstyledButton>
              </Menu.Target>
              <Menu.Dropdown>
                {Object.entries(stepNames).map(([type, name]) => (
                  <Menu.Item key={type} leftSection={<Icon name={icons[type]!} size={14} />} onClick={() => c.onInsert!(from, key, type)}>
                    {name}
                  </Menu.Item>
                ))}
              </Menu.Dropdown>
            </Menu>
          )}
        </Group>
      </EdgeLabelRenderer>
    </>
  )
}

const nodeTypes = { step: StepNode, end: EndNode }
const edgeTypes = { way: Way }

/** Where each step stands, and what is on the ways: dagre lays them out from the top. */
function placed(d: Definition, editable: boolean): { nodes: Node[]; edges: Edge[] } {
  const g = new graphlib.Graph({ multigraph: true })
  g.setGraph({ rankdir: 'TB', nodesep: 40, edgesep: 16, ranksep: 48 })
  g.setDefaultEdgeLabel(() => ({}))
  g.setNode('trigger', { width, height })
  for (const s of d.steps) g.setNode(s.id, { width, height })
  const edges: Edge[] = []
  const link = (from: string, key: string, label: string, to: string | null | undefined) => {
    let target = to && d.steps.some((s) => s.id === to) ? to : undefined
    if (!target) {
      target = `end ${from} ${key}`
      g.setNode(target, { width: 60, height: 20 })
    }
    g.setEdge(from, target, { width: (label ? 7 * label.length + 8 : 0) + (editable ? 24 : 0), height: label || editable ? 20 : 0, labelpos: 'c' }, key)
    edges.push({ id: `${from} ${key}`, source: from, target, type: 'way', data: { key, label } })
  }
  link('trigger', 'next', '', d.steps[0]?.id)
  for (const s of d.steps) for (const o of outlets(s)) link(s.id, o.key, o.label, o.to)
  layout(g)
  for (const e of edges) {
    // Where nothing stands on a way, the layout keeps no place for it.
    const { x, y } = g.edge(e.source, e.target, (e.data as { key: string }).key) as { x?: number; y?: number }
    if (x !== undefined && y !== undefined) e.data!.at = { x, y }
  }
  const nodes = g.nodes().map((id): Node => {
    const n = g.node(id)
    return { id, type: id.startsWith('end ') ? 'end' : 'step', position: { x: n.x - n.width / 2, y: n.y - n.height / 2 }, data: {}, draggable: false, focusable: false, selectable: false, width: n.width, height: n.height, style: { pointerEvents: 'all' } }
  })
  return { nodes, edges }
}

/** Shows the whole flow again when a step came or went. */
function Refit({ of }: { of: string }) {
  const { fitView } = useReactFlow()
  useEffect(() => {
    const frame = requestAnimationFrame(() => void fitView({ maxZoom: 1, padding: 0.15 }))
    return () => cancelAnimationFrame(frame)
  }, [of, fitView])
  return null
}

/** The steps of a flow as a picture; each is a button that opens its panel. */
export default function Canvas(props: CanvasProps) {
  const { nodes, edges } = useMemo(() => placed(props.d, props.onInsert !== undefined), [props.d, props.onInsert !== undefined])
  const scheme = useComputedColorScheme('light')
  return (
    <Shown.Provider value={props}>
      <Box h="max(420px, calc(100vh - 190px))" role="group" aria-label="Steps of the flow">
        <ReactFlow nodes={nodes} edges={edges} nodeTypes={nodeTypes} edgeTypes={edgeTypes} colorMode={scheme} fitView fitViewOptions={{ maxZoom: 1, padding: 0.15 }} minZoom={0.2} nodesConnectable={false} nodesFocusable={false} edgesFocusable={false} elementsSelectable={false} proOptions={{ hideAttribution: true }}>
          <Background />
          <Refit of={nodes.map((n) => n.id).join(' ')} />
          <Controls showInteractive={false} />
        </ReactFlow>
      </Box>
    </Shown.Provider>
  )
}
